"""The host as this program sees it: its roots, its clock, and the deadline."""

from __future__ import annotations

import os
import time

from flink_gpu_discovery.errors import TryAgainError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Host:
    """Where the host's trees are mounted; tests hand in folders of their own."""

    __slots__ = ("etc", "proc", "run", "sys")

    def __init__(self, *, proc: str = "/proc", sys: str = "/sys", run: str = "/run", etc: str = "/etc") -> None:
        self.proc: Final = proc
        self.sys: Final = sys
        self.run: Final = run
        self.etc: Final = etc


class Deadline:
    """A moment on CLOCK_BOOTTIME, in seconds, after which nothing may be changed or printed any more."""

    __slots__ = ("_end", "seconds")

    def __init__(self, *, start: float, seconds: float) -> None:
        self.seconds: Final = seconds
        self._end: Final = start + seconds

    @classmethod
    def from_now(cls, seconds: float) -> Deadline:
        """One that begins now instead of with the process."""
        return cls(start=time.clock_gettime(time.CLOCK_BOOTTIME), seconds=seconds)

    def remaining(self) -> float:
        """Seconds left, 0 when it has passed."""
        return max(0.0, self._end - time.clock_gettime(time.CLOCK_BOOTTIME))

    def check(self, what: str) -> None:
        """``TryAgainError`` once it has passed."""
        if self.remaining() <= 0:
            raise TryAgainError(f"{what}: the deadline of {self.seconds:g} s has passed", "try again")


def utc_now() -> str:
    """The time for people: ISO 8601, UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_file(path: str, limit: int = 64 * 1024, flags: int = 0) -> bytes:
    """A file of ``/proc`` or ``/sys``, which may come in pieces of a page; ``OSError`` as the kernel says."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    content = b""
    try:
        while len(content) < limit:
            piece = os.read(descriptor, limit - len(content))
            if not piece:
                break
            content += piece
        return content
    finally:
        os.close(descriptor)
