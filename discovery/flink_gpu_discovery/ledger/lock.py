"""The lock beside the ledger: one file that is never replaced or deleted, held with flock(2).

Waiting is polling, since a blocked flock(2) could outlast the deadline.
"""

from __future__ import annotations

import fcntl
import os
import time

from flink_gpu_discovery.errors import TryAgainError
from flink_gpu_discovery.ledger import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Final

    from flink_gpu_discovery.host import Deadline

_FIRST_PAUSE_SECONDS = 0.001
_LONGEST_PAUSE_SECONDS = 0.02


class Lock:
    """Exclusive between processes; ``with Lock(path, deadline): …`` or ``TryAgainError`` at the deadline."""

    __slots__ = ("_deadline", "_descriptor", "_path")

    def __init__(self, path: str, deadline: Deadline) -> None:
        self._path: Final = path
        self._deadline: Final = deadline
        self._descriptor = -1

    def __enter__(self) -> Lock:
        while True:
            self._descriptor = files.open_lock(self._path)
            try:
                self._wait()
                if self._still_named():
                    return self
            except BaseException:
                self._close()
                raise
            self._close()

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
                    raise TryAgainError(
                        f"{self._path}: another process keeps the lock, for {self._deadline.seconds:g} s now",
                        "find it with 'fuser' on it",
                    ) from error
                time.sleep(min(pause, remaining))
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
            except OSError as error:
                raise files.refused(self._path, "lock", error) from error

    def _still_named(self) -> bool:
        """Whether the path still names what is locked; a tmp cleaner may have removed it meanwhile."""
        try:
            named = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise files.refused(self._path, "look at", error) from error
        locked = os.fstat(self._descriptor)
        return (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino)

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1
