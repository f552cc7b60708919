"""A mount namespace that shows a private host, and the process that holds it."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.isolation.hierarchies import View, of_this_machine
from tests.support.script import PATH

_SCRIPT = Path(__file__).with_name("namespace.sh")


class CannotBuildError(Exception):
    """The private host can't be set up here; says what the commands said."""


class Namespace:
    """What ``namespace.sh`` makes; it lasts until ``close``, or until the test run ends in whatever way."""

    def __init__(self, folder: Path, view: View, *, library: Path | None, read_only_cgroups: bool) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        unified = of_this_machine().v2
        words = (str(folder), view, str(unified or ""), "ro" if read_only_cgroups else "rw", str(library or ""))
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", str(_SCRIPT), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PATH": PATH},
            text=True,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            _, errors = self._holder.communicate(timeout=10)
            raise CannotBuildError(f"{_SCRIPT.name} ended with {self._holder.returncode}: {errors.strip()}")
        self._identity = _mount_namespace(self._holder.pid)

    @property
    def enter(self) -> tuple[str, ...]:
        """Words before a command that let it run inside, as root, in ``/``, with the PID kept."""
        return ("nsenter", f"--mount=/proc/{self._holder.pid}/ns/mnt", "--")

    def path(self, inside: str) -> Path:
        """A file of the namespace as this process reaches it; no absolute link may be on the way, it would lead out."""
        return Path(f"/proc/{self._holder.pid}/root{inside}")

    def mountinfo(self) -> str:
        """What is mounted inside."""
        return Path(f"/proc/{self._holder.pid}/mountinfo").read_text(encoding="utf-8")

    def pids(self) -> Iterator[int]:
        """Every process in it but the holder: all that was started in the lab, wherever it went since."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self._holder.pid and self.holds(int(entry.name)):
                yield int(entry.name)

    def holds(self, pid: int) -> bool:
        """Whether the process is in it, and no zombie."""
        return _mount_namespace(pid) == self._identity

    def close(self) -> None:
        """End the holder; the mounts go with the namespace's last process."""
        self._holder.send_signal(signal.SIGKILL)
        self._holder.wait(timeout=10)
        for pipe in (self._holder.stdin, self._holder.stdout, self._holder.stderr):
            if pipe is not None:
                pipe.close()


def _mount_namespace(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/ns/mnt").readlink())
    except OSError:
        return ""  # it has ended
