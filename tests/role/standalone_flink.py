"""Flink as a standalone cluster: a JobManager on this machine, TaskManagers in systemd's services on a booted host."""

from __future__ import annotations

import json
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.booted.host import BootedHost
from tests.flink.configuration import LOOPBACK, GpuSettings, cluster_settings, free_ports, write_configuration
from tests.flink.daemon import JVM_OPTIONS, Daemon
from tests.flink.host import Host
from tests.flink.rest import RestClient
from tests.flink.waiting import wait_until
from tests.isolation.installation import SCRIPT

TEMPLATE = "flink-taskmanager@.service"
UNITS = ("flink-taskmanager@1.service", "flink-taskmanager@2.service")

_START_SECONDS = 60.0
_END_SECONDS = 15.0
_SAMPLE_SECONDS = 0.05
_HOME = "/opt/flink"
_CONF = "/etc/flink"
_UNIT = f"""\
[Unit]
StartLimitIntervalSec=0
[Service]
User=flink
LogsDirectory=flink
Environment=FLINK_CONF_DIR={_CONF} FLINK_LOG_DIR=/var/log/flink FLINK_IDENT_STRING=%i JAVA_HOME={{java_home}}
Environment="JAVA_TOOL_OPTIONS={JVM_OPTIONS}"
ExecStart={_HOME}/bin/taskmanager.sh start-foreground $ARGUMENTS
SuccessExitStatus=143
"""


def mounts(flink_home: Path) -> dict[Path, str]:
    """What a booted host needs of this machine to run Flink: Flink, the JVM, and where Debian keeps its settings."""
    home = _java_home()
    settings = {path.resolve().parent for path in (home / "conf").glob("*.properties")} | {(home / "lib").resolve()}
    outside = {path for path in settings if not path.is_relative_to(home)}
    return {flink_home: _HOME, home: str(home), **{path: str(path) for path in outside}}


class StandaloneFlink:
    """``with StandaloneFlink(...) as flink``: the JobManager runs; TaskManagers are started by ``start``."""

    def __init__(self, host: BootedHost, flink_home: Path, folder: Path) -> None:
        rpc_port, rest_port = free_ports(2)
        self._host = host
        self._folder = folder
        self._settings = {
            **cluster_settings(rpc_port, rest_port),
            **GpuSettings(Path(SCRIPT), amount=2).as_flink_settings(),
        }
        self._rest = RestClient(LOOPBACK, rest_port)
        self.rest_url = f"http://{LOOPBACK}:{rest_port}"
        self._jobmanager = Daemon(flink_home, folder / "jobmanager", "jobmanager.sh", self._settings, Host())
        self._configure(flink_home)

    def start(self, unit: str) -> None:
        """Start a TaskManager; ``wait_for`` waits until it is registered."""
        self._host.succeed("systemctl", "start", unit)

    def wait_for(self, count: int) -> None:
        """Until that many TaskManagers are registered."""
        wait_until(lambda: len(self.registered()) == count, _START_SECONDS, f"{count} are registered", self._folder)

    def registered(self) -> frozenset[str]:
        """The ids of the TaskManagers that Flink's REST interface shows."""
        return self._rest.taskmanagers() or frozenset()

    def pid(self, unit: str) -> int:
        """The TaskManager's JVM, as the host numbers it; 0 if none runs."""
        return int(self._host.succeed("systemctl", "show", "--property=MainPID", "--value", unit))

    def held(self) -> dict[int, int]:
        """How many GPUs each JVM holds, and is confined to."""
        records = json.loads(self._host.succeed(SCRIPT, "status", "--isolate", "--json"))["records"]
        assert {record["confinement"] for record in records} <= {"in force"}
        owners = [record["owner"]["pid"] for record in records]
        return {pid: owners.count(pid) for pid in owners}

    @contextmanager
    def observed(self) -> Iterator[list[int]]:
        """How many TaskManagers were registered meanwhile: a new number at each change."""
        counts = [len(self.registered())]
        done = threading.Event()

        def sample() -> None:
            while not done.wait(_SAMPLE_SECONDS):
                if (now := len(self.registered())) != counts[-1]:
                    counts.append(now)

        sampler = threading.Thread(target=sample)
        sampler.start()
        try:
            yield counts
        finally:
            done.set()
            sampler.join()

    def _configure(self, flink_home: Path) -> None:
        conf = self._folder / "conf"
        shutil.copytree(flink_home / "conf", conf)
        write_configuration(conf, self._settings)
        self._host.copy_in(conf, _CONF)
        self._host.unit(TEMPLATE, _UNIT.format(java_home=_java_home()))

    def __enter__(self) -> StandaloneFlink:
        self._jobmanager.launch()
        try:
            self._jobmanager.attach()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JobManager; the TaskManagers end with their host."""
        self._jobmanager.send(signal.SIGTERM)
        self._jobmanager.wait_for_end(_END_SECONDS)


def _java_home() -> Path:
    java = shutil.which("java")
    assert java is not None, "no java in PATH, which the fixture flink_home should have seen"
    return Path(java).resolve().parents[1]
