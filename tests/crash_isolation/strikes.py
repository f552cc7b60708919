"""Faults of the program alone: its children are not traced, so that what is done to it isn't done to them, too.

Process ids differ from run to run, so calls are compared with all numbers blanked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tests.crash import strace
from tests.crash.strace import MEMORY, Call, Fault

# How often these are called depends on how long the proof's child or a thread takes; what they do changes nothing.
WAITING = ("poll", "wait4", "read", "sched_getaffinity", "clock_nanosleep")
_CHANGING = ("clone", "exit_group", "flock", "mkdir", "rename", "rmdir", "unlink", "write")
_CHANGING_BPF = ("bpf(BPF_PROG_LOAD", "bpf(BPF_PROG_ATTACH")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_NUMBER = re.compile(r"(?<!\w)\d+(?!x)")
_WITH_FILES = "-y"


@dataclass(frozen=True)
class Strike(Fault):
    """``error``, or else ``signal``, at one call of the program."""

    signal: str = "KILL"

    @property
    def varies(self) -> bool:
        """Whether another run may make more or fewer of these calls."""
        return self.call.name in (*MEMORY, *WAITING)

    def options(self) -> list[str]:
        what = f"error={self.error}" if self.error else f"signal={self.signal}"
        name = self.call.name
        return [_WITH_FILES, *strace.selecting((), (name,)), "-e", f"inject={name}:{what}:when={self.call.nth}"]

    def missed(self, log: str) -> str:
        return super().missed(_blanked(log))


def changes(call: Call) -> bool:
    """Whether it changes something, or could be mistaken for what does."""
    return call.name in _CHANGING or "O_WRONLY" in call.text or call.text.startswith(_CHANGING_BPF)


def command(log: Path, strike: Strike | None) -> list[str]:
    """The words before the program's; without a strike it is a listing."""
    return strace.tracing(log, strike.options() if strike else [_WITH_FILES])


def calls_in(log: str) -> tuple[Call, ...]:
    """The calls of a listing."""
    return strace.calls_in(_blanked(log))


def _blanked(log: str) -> str:
    return _NUMBER.sub("N", _ADDRESS.sub("0x", log))
