"""The lock beside the ledger: one file that is never replaced or deleted, held with flock(2).

Waiting is polling, since a blocked flock(2) could outlast the deadline.
"""

from __future__ import annotations

import fcntl
import os
import time

from flink_gpu_discovery.errors import TryAgainError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.ledger import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Final

    from flink_gpu_discovery.host import Deadline, Host

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.02


class Lock:
    """Exclusive between processes; ``with Lock(…): …`` or ``TryAgainError`` at the deadline."""

    __slots__ = ("_deadline", "_descriptor", "_modes", "_path", "_proc")

    def __init__(self, path: str, deadline: Deadline, host: Host, modes: files.Modes) -> None:
        self._path: Final = path
        self._modes: Final = modes
        self._proc: Final = host.proc
        self._deadline: Final = deadline
        self._descriptor = -1

    def __enter__(self) -> Lock:
        while True:
            self._descriptor = files.open_lock(self._path, self._modes)
            try:
                self._wait()
                if self._still_named():
                    return self
            except BaseException:
                self._close()
                raise
            self._close()
            self._deadline.check(f"{self._path} is replaced again and again")

    @property
    def knows_ledger(self) -> bool:
        """Whether a ledger was ever written beside it: the file is empty only until then."""
        try:
            return os.fstat(self._descriptor).st_size > 0
        except OSError as error:
            raise files.refused(self._path, "look at", error) from error

    def note_ledger(self) -> None:
        """Remember that a ledger is there."""
        try:
            if os.fstat(self._descriptor).st_size == 0:
                os.write(self._descriptor, b"flink-gpu-ledger\n")
        except OSError:
            pass  # the next call that changes the ledger tries again

    def check(self) -> None:
        """``TryAgainError`` if the file was removed or replaced meanwhile: then others may hold "the" lock."""
        if not self._still_named():
            raise TryAgainError(f"{self._path} was removed or replaced while it was held", "find out what did that")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _wait(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError as error:
                remaining = self._deadline.remaining()
                if remaining <= 0:
                    raise self._kept_by_others() from error
                time.sleep(min(pause, remaining))
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            except OSError as error:
                raise files.refused(self._path, "lock", error) from error

    def _still_named(self) -> bool:
        """Whether the path still names what is locked; a tmp cleaner may have removed it meanwhile."""
        try:
            named = os.stat(self._path, follow_symlinks=False)
            locked = os.fstat(self._descriptor)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise files.refused(self._path, "look at", error) from error
        return (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino)

    def _kept_by_others(self) -> TryAgainError:
        """The refusal at the deadline, with who holds the lock."""
        pids = holders(self._descriptor, self._proc)
        return TryAgainError(
            f"{self._path} is still locked by {' and '.join(pids) or 'a process that /proc/locks does not show'} after"
            f" {self._deadline.seconds:g} s",
            "see what it waits for, or end it",
        )

    def _close(self) -> None:
        files.close(self._descriptor)
        self._descriptor = -1


def holders(descriptor: int, proc: str) -> list[str]:
    """The processes that hold a flock on an open file, as ``pid N (command)``. Source: proc_locks(5).

    Lines read ``1: FLOCK  ADVISORY  WRITE 4711 fd:01:1234 0 EOF``, with the device's numbers in hexadecimal, and
    ``->`` before the type of those that wait.
    """
    opened = os.fstat(descriptor)
    file = f"{os.major(opened.st_dev):02x}:{os.minor(opened.st_dev):02x}:{opened.st_ino}"
    try:
        lines = read_file(f"{proc}/locks", 1024 * 1024).decode("ascii", "replace").splitlines()
    except OSError:
        return []
    found = [words[4] for words in [line.split() for line in lines] if words[1:2] == ["FLOCK"] and words[5] == file]
    return [f"pid {pid}{_command(pid, proc)}" for pid in found if pid.isdigit() and pid != "0"]


def _command(pid: str, proc: str) -> str:
    try:
        return f" ({read_file(f'{proc}/{pid}/comm').decode('utf-8', 'replace').strip()})"
    except OSError:
        return ""
