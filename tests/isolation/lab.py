"""A private host on the real kernel: its own devices, users, settings, GPUs and view of the cgroups.

It is a mount namespace, so labs run side by side; PIDs, users' numbers and the cgroup trees are the machine's.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

from tests.isolation import cards as gpus
from tests.isolation import installation
from tests.isolation.agent import Agent, Agents
from tests.isolation.cgroup import Cgroup
from tests.isolation.hierarchies import View, of_this_machine
from tests.isolation.launching import launch_words
from tests.isolation.namespace import Namespace
from tests.standins.kfd import KfdCpu, KfdGpu
from tests.standins.nvml.faults import Fault
from tests.standins.nvml.scenario import Scenario, write
from tests.support.script import PATH, Result

FLINK = 7001
OTHER = 7002
USERS = {"flink": FLINK, "other": OTHER}
SCENARIO = Path("/opt/nvml/scenario")
SETTINGS = "/etc/flink-gpu-discovery.conf"

_KILL_SECONDS = 10.0
_serial = itertools.count(1)


class LeftoverError(Exception):
    """Something of a lab could not be removed."""


class Lab:
    """``with Lab(folder, "hybrid", library=…, release=…) as lab: …``; everything of it is gone afterwards.

    ``folder`` is covered inside by what the lab writes. ``library`` is an NVML stand-in whose default scenario is
    ``SCENARIO``; ``release`` is what ``installation.prepare_release`` made.
    """

    def __init__(
        self,
        folder: Path,
        view: View = "hybrid",
        *,
        library: Path | None = None,
        release: Path | None = None,
        read_only_cgroups: bool = False,
    ) -> None:
        self.view: View = view
        self.name = f"lab-{os.getpid()}-{next(_serial)}"
        self._release = release
        self._hierarchies = of_this_machine().seen_in(view)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._agents: list[Agent] = []
        self._serials = itertools.count(1)
        self._namespace = Namespace(folder, view, library=library, read_only_cgroups=read_only_cgroups)
        self._hall = Agents(f"flink-gpu-{self.name}")
        self._top = Cgroup(self.name, self._hierarchies, view)
        installation.add_users(self._namespace, USERS)
        if library:
            write(Scenario(), self.path(str(SCENARIO)))

    # The host

    def path(self, inside: str) -> Path:
        """A file inside as the test reaches it, to read, write or remove; see ``Namespace.path``."""
        return self._namespace.path(inside)

    def mountinfo(self) -> str:
        """What is mounted inside."""
        return self._namespace.mountinfo()

    def mknod(self, path: str, major: int, minor: int, mode: int = 0o666) -> None:
        """Make a character device."""
        gpus.make_node(self.path(path), major, minor, mode)

    def install(self) -> None:
        """Install the package, and let the lab's users call its root script through sudo."""
        assert self._release is not None, "a lab without a release has nothing to install"
        installation.install(self._namespace, self._release)
        self.sudoers(installation.sudo_rules(tuple(USERS)))

    def sudoers(self, text: str, name: str = "flink-gpu-discovery") -> None:
        """Write a file of /etc/sudoers.d."""
        self._write(f"/etc/sudoers.d/{name}", text, 0o440)

    def settings(self, text: str) -> None:
        """Write the package's settings file."""
        self._write(SETTINGS, text, 0o644)

    # GPUs

    def nvidia(self, *cards: gpus.Card, faults: tuple[Fault, ...] = (), hide: bool = True) -> None:
        """Let these be the NVIDIA GPUs; nodes of earlier ones stay, NVML tells of them no more.

        ``hide``: NVML leaves out what its caller may not open, as the real library does.
        """
        gpus.install_nvidia(self.path, cards)
        scenario = Scenario(gpus.scenario_gpus(cards), faults=faults, open_nodes="hide" if hide else None)
        file = write(scenario, self.path(str(SCENARIO)))
        file.chmod(0o644)

    def amd(self, *nodes: KfdCpu | KfdGpu) -> None:
        """Let these be the nodes of the KFD topology; once a lab."""
        gpus.install_amd(self.path, nodes)

    # Cgroups and processes

    def cgroup(self, name: str) -> Cgroup:
        """A cgroup of the lab, made if it is not there yet."""
        return self._top.child(name)

    def start(
        self,
        *words: str,
        uid: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        cgroup: Cgroup | None = None,
        capabilities: Iterable[str] = (),
        output: int = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:
        """Begin a command as a child of the test; see ``launch_words``. Ended with the lab at the latest."""
        enter = self._namespace.enter
        command = launch_words(words, enter=enter, uid=uid, env=env, cwd=cwd, cgroup=cgroup, capabilities=capabilities)
        stderr = subprocess.PIPE if output == subprocess.PIPE else None
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=stderr, env={"PATH": PATH})
        self._processes.append(process)
        return process

    def run(
        self,
        *words: str,
        uid: int = 0,
        env: Mapping[str, str] | None = None,
        cwd: str = "/",
        cgroup: Cgroup | None = None,
        capabilities: Iterable[str] = (),
        seconds: float = 20,
    ) -> Result:
        """One command from start to end."""
        process = self.start(
            *words, uid=uid, env=env, cwd=cwd, cgroup=cgroup, capabilities=capabilities, output=subprocess.PIPE
        )
        out, err = process.communicate(timeout=seconds)
        return Result(process.returncode, out.decode(), err.decode())

    def executor(
        self,
        uid: int = FLINK,
        cgroup: Cgroup | None = None,
        *,
        capabilities: Iterable[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> Agent:
        """A process that stands for a task executor, in a fresh cgroup unless one is given."""
        home = cgroup or self.cgroup(f"executor-{next(self._serials)}")
        process = self.start(*self._hall.words, uid=uid, env=env, cgroup=home, capabilities=capabilities)
        agent = Agent(self._hall, process.pid, home, process)
        self._agents.append(agent)
        return agent

    # The end

    def close(self) -> None:
        """End every process of the lab, and remove its cgroups; ``LeftoverError`` if something stays."""
        left = self._kill_all()
        for agent in self._agents:
            agent.hang_up()
        for process in self._processes:
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
        self._hall.close()
        self._namespace.close()
        try:
            self._top.remove()
        except OSError as error:
            left.append(str(error))
        if left:
            raise LeftoverError(f"{self.name}: {', '.join(left)}")

    def pids(self) -> set[int]:
        """Every process that was started in it, wherever it went, and whatever is in its cgroups; no zombies."""
        return {*self._namespace.pids(), *self._top.pids()} - {os.getpid()}

    def _kill_all(self) -> list[str]:
        """SIGKILL until none is left; tells of those that don't go."""
        end = time.monotonic() + _KILL_SECONDS
        while pids := self.pids():
            for pid in pids:
                self._kill(pid)
            for process in self._processes:
                process.poll()
            if time.monotonic() > end:
                return [f"process {pid} can't be killed" for pid in pids]
            time.sleep(0.005)
        for process in self._processes:
            process.wait(timeout=_KILL_SECONDS)
        return []

    def _kill(self, pid: int) -> None:
        """Through a pidfd: what has that PID by now must still be the lab's."""
        with contextlib.suppress(ProcessLookupError):
            descriptor = os.pidfd_open(pid)
            try:
                if self._namespace.holds(pid) or pid in self._top.pids():
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
            finally:
                os.close(descriptor)

    def _write(self, inside: str, text: str, mode: int) -> None:
        path = self.path(inside)
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
