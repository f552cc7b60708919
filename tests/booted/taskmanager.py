"""A unit whose main process stands for a TaskManager: it lives on, and does what it is told to."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from tests.booted.host import ContainerHost
from tests.booted.installation import GPUS, NODES
from tests.isolation import agent_process
from tests.isolation.agent import Agent, Agents
from tests.isolation.installation import SCRIPT
from tests.support.script import Result

OPEN, DENIED = "ENXIO", "EPERM"  # no driver is behind what may be opened

_SETTLING_SECONDS = 5.0
AGENT = "/opt/agent_process.py"
_UNIT = f"""\
[Unit]
StartLimitIntervalSec=0
[Service]
User={{user}}
ExecStart=/usr/bin/python3 -IS {AGENT} {{hall}}
"""
_RECLAIM = f"ExecStopPost=+{SCRIPT} reclaim --isolate\n"

_FORGET = """\
systemctl stop "$@"
systemctl revert "$@" 2>/dev/null
cd /etc/systemd/system
for unit; do rm -rf "$unit" "$unit.d"; done
systemctl daemon-reload
systemctl reset-failed
"""


class TaskManager(Agent):
    """The main process of a running unit. ``inner_pid`` is its number on the host, ``pid`` that on this machine."""

    def __init__(self, hall: Agents, host: ContainerHost, unit: str, pid: int) -> None:
        self.host = host
        self.unit = unit
        self.inner_pid = pid
        super().__init__(hall, host.outer_pid(pid), None, self)

    def kill(self) -> None:
        """SIGKILL to the main process alone; systemd, its parent, ends the unit then."""
        self.host.succeed("systemctl", "kill", "--kill-who=main", "--signal=KILL", self.unit)
        self.hang_up()

    def ask(self, amount: int = 2) -> Result:
        """What Flink's GPUDriver does: the unprivileged process asks for GPUs, to be confined to them."""
        return self.call(SCRIPT, str(amount), "--isolate")

    def cgroup_now(self) -> str:
        """Its cgroup, as the host names it, in the hierarchy by which it is confined."""
        lines: str = self.evaluate("Path('/proc/self/cgroup').read_text()")
        paths = dict(line.split(":", 2)[1:] for line in lines.splitlines())
        return str(paths["devices" if self.host.layout == "v1" else ""])

    def opens(self) -> set[int]:
        """The indexes of the GPUs that it may open; all others are denied."""
        told = dict(zip(GPUS, self.evaluate(f"[try_open(path) for path in {list(NODES)!r}]"), strict=True))
        assert set(told.values()) <= {OPEN, DENIED}, told
        return {index for index, answer in told.items() if answer == OPEN}

    def shell(self, script: str, seconds: float = 20) -> Result:
        """A script as its child. ``ME`` is the TaskManager's own PID; a user manager is called on if it runs."""
        runtime = f"/run/user/{self.evaluate('os.getuid()')}"
        environment = {
            "ME": str(self.inner_pid),
            "XDG_RUNTIME_DIR": runtime,
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
        }
        return self.call("sh", "-c", script, env=environment, seconds=seconds)


class TaskManagers:
    """Starts units of TaskManagers on a host on which the program is installed, and forgets them in the end.

    Their units give GPUs back when they stop, unless ``plain``: then whoever installs the program sees to that.
    """

    def __init__(self, host: ContainerHost, *, plain: bool = False) -> None:
        self._host = host
        self._text = _UNIT if plain else _UNIT + _RECLAIM
        self._hall = Agents(host.name)
        self._running: list[TaskManager] = []
        host.copy_in(Path(agent_process.__file__), AGENT)

    def start(self, unit: str = "taskmanager.service", *lines: str, user: str = "flink") -> TaskManager:
        """Write the unit, with further lines in its [Service] section, and start it."""
        self.write(unit, *lines, user=user)
        return self.restart(unit)

    def write(self, unit: str, *lines: str, user: str = "flink") -> None:
        """Write the unit alone; a template's instances can be started by ``restart``."""
        more = "".join(f"{line}\n" for line in lines)
        self._host.unit(unit, self._text.format(user=user, hall=self._host.name) + more)

    def restart(self, unit: str) -> TaskManager:
        """Stop the unit if it runs, and start it; the main process is another one then."""
        self._host.succeed("systemctl", "restart", unit)
        return self.join(unit)

    def join(self, unit: str) -> TaskManager:
        """The main process of a unit that runs, whoever has started it."""
        told = self._host.succeed("systemctl", "show", "-P", "MainPID", unit)
        manager = TaskManager(self._hall, self._host, unit, int(told))
        self._running.append(manager)
        return manager

    def stop_all(self) -> None:
        """Stop every unit that was started, and forget it with all that was set on it."""
        for manager in self._running:
            manager.hang_up()
        units = sorted({manager.unit for manager in self._running})
        self._running.clear()
        if units:
            self._host.succeed("sh", "-c", _FORGET, "sh", *units, seconds=60)

    def close(self) -> None:
        """Hear no more of them."""
        for manager in self._running:
            manager.hang_up()
        self._hall.close()


def records(host: ContainerHost) -> list[dict[str, Any]]:
    """What ``status`` tells root."""
    entries: list[dict[str, Any]] = json.loads(host.succeed(SCRIPT, "status", "--isolate", "--json"))["records"]
    return entries


def confinements(host: ContainerHost) -> list[str]:
    """Every cgroup on the host under a name of ours."""
    return host.succeed("find", "/sys/fs/cgroup", "-type", "d", "-name", "flink-gpu-*").split()


def check_in_force(manager: TaskManager, held: set[int]) -> None:
    """The kernel denies it all other GPUs, in a cgroup below the unit's, and ``status`` knows.

    systemd may just be writing a list of devices of the unit's anew: then for a moment less is open, and never more.
    """
    end = time.monotonic() + _SETTLING_SECONDS
    while (seen := (manager.opens(), _states(manager))) != (held, {"in force"}):
        assert seen[0] <= held, f"{manager.unit} may open {seen[0]}"
        assert time.monotonic() < end, f"{manager.unit} may open {seen[0]}, and is {seen[1]}"
    cgroup = manager.cgroup_now()
    own = manager.host.succeed("systemctl", "show", "-P", "ControlGroup", manager.unit).strip()
    assert own.startswith("/system.slice/"), own
    assert cgroup.startswith(f"{own}/flink-gpu-{manager.inner_pid}-"), cgroup


def _states(manager: TaskManager) -> set[str]:
    """What ``status`` tells of its confinement."""
    told = records(manager.host)
    return {record["confinement"] for record in told if record["owner"]["pid"] == manager.inner_pid}
