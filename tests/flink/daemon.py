"""One JobManager or TaskManager, started by Flink's own script in folders of its own."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

from .configuration import write_configuration
from .host import Host

START_LIMIT_SECONDS = 60.0

# For JVMs that live for seconds: the optimising compiler costs more than it gains.
JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:-UsePerfData"


class Daemon:
    """A process of a cluster: its configuration, logs and PID file, and the process once it runs."""

    def __init__(self, flink_home: Path, folder: Path, script: str, settings: Mapping[str, str], host: Host) -> None:
        self.name = folder.name
        self.folder = folder
        self._host = host
        self._script = host.flink_home(flink_home) / "bin" / script
        self.pid = 0
        self._pidfd: int | None = None
        self._launcher: subprocess.Popen[bytes] | None = None
        written = [folder / part for part in ("log", "pid", "tmp")]
        for part in written:
            part.mkdir(parents=True)
        host.hand_over(*written)
        shutil.copytree(flink_home / "conf", folder / "conf")
        write_configuration(folder / "conf", {**settings, "io.tmp.dirs": str(folder / "tmp")})

    def launch(self) -> None:
        """Run Flink's start script without waiting for it, so that several can start at once."""
        with (self.folder / "log" / "start.out").open("wb") as output:
            command = [str(self._script), "start"]
            self._launcher = self._host.start(self.name, command, self._environment(), self.folder, output.fileno())

    def attach(self) -> None:
        """Wait for the start script and take hold of the process that it left running."""
        launcher, self._launcher = self._launcher, None
        if launcher is None:
            return
        try:
            launcher.wait(START_LIMIT_SECONDS)
        except BaseException:
            os.killpg(launcher.pid, signal.SIGKILL)  # with all that it has started
            launcher.wait()
            raise
        pid_file = next((self.folder / "pid").glob("*.pid"), None)
        if pid_file is None:
            raise AssertionError(f"{self.name} was not started: {self._launcher_output()}")
        self._hold(int(pid_file.read_text()))

    def is_alive(self) -> bool:
        """Tell whether the process runs; one that ended and was not reaped does not."""
        return self._pidfd is not None and not _ends_within(self._pidfd, 0)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to this very process; none where it has ended."""
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def wait_for_end(self, seconds: float) -> None:
        """Wait for the process to end, and kill it where it does not."""
        if self._pidfd is None:
            return
        if not _ends_within(self._pidfd, seconds):
            self.send(signal.SIGKILL)
            _ends_within(self._pidfd, seconds)
        os.close(self._pidfd)
        self._pidfd = None

    def log(self) -> str:
        """Return what the process has logged."""
        return "".join(file.read_text(errors="replace") for file in (self.folder / "log").glob("*.log"))

    def _environment(self) -> dict[str, str]:
        """Nothing of the caller's environment but where Java is: no FLINK_*, HADOOP_* or visible GPUs."""
        kept = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
        folders = {f"FLINK_{part.upper()}_DIR": str(self.folder / part) for part in ("conf", "log", "pid")}
        return {
            **kept,
            **folders,
            "FLINK_IDENT_STRING": self.name,
            "HOME": str(self.folder),
            "JAVA_TOOL_OPTIONS": JVM_OPTIONS,
        }

    def _hold(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            pidfd = os.pidfd_open(pid)
            # The number came from a file. What is held is signalled later, so it has to be what was started here.
            if os.fsencode(self.folder / "conf") in _command_line(pid):
                self._pidfd, self.pid = pidfd, pid
                return
            os.close(pidfd)
        raise AssertionError(f"{self.name} ended at once: {self._launcher_output()}")

    def _launcher_output(self) -> str:
        return (self.folder / "log" / "start.out").read_text(errors="replace")


def _ends_within(pidfd: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)  # readable once the process has ended, reaped or not
    return bool(poll.poll(seconds * 1000))


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except FileNotFoundError:
        return b""
