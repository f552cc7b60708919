"""strace(1) for fault injection: list the system calls of a program, kill it at one of them, or let one fail.

A call is known by its name and a count, as strace knows it: the ``nth`` of that name, among those on certain paths
where ``paths`` are given. The signal comes as the call is entered, so a killed call has not been carried out; nor has
one that an error was injected into. What strace logs is compared with the listing, so that a fault which
hit another call, or none, is noticed.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.script import PATH

PROGRAM = "strace"
# How often these are called may differ between two runs of one interpreter; they touch no file.
MEMORY = ("brk", "madvise", "mmap", "mremap", "munmap")
_LINE = re.compile(r"(?:\d+ +)?(\w+\(.*)")
_ADDRESS = re.compile(r"0x[0-9a-f]+")
_INJECTED = " (INJECTED)"
_KILLED = "+++ killed by SIGKILL +++"
_END = re.compile(r"(?:\d+ +)?\+\+\+ (?:exited with|killed by) ")


@dataclass(frozen=True)
class Call:
    """One system call of a listing; ``nth`` of its ``name`` from 1, ``place`` among all of them from 0."""

    name: str
    nth: int
    place: int
    text: str


@dataclass(frozen=True)
class Fault:
    """What happens to ``call``: SIGKILL as it is entered, or ``error`` instead of carrying it out.

    ``lasting``: the same to all calls of that name on ``paths`` that follow.
    """

    call: Call
    error: str = ""
    lasting: bool = False
    paths: tuple[Path, ...] = ()

    def options(self) -> list[str]:
        """The options of strace that bring it about."""
        what = f"error={self.error}" if self.error else "signal=KILL"
        when = f"{self.call.nth}{'+' if self.lasting else ''}"
        chosen = [*selecting(self.paths, (self.call.name,)), "-e", f"inject={self.call.name}:{what}:when={when}"]
        # With the seccomp filter only the calls of that name stop, which is quicker, but then a signal isn't sent.
        return ["-f", "--seccomp-bpf", *chosen] if self.error else chosen

    def missed(self, log: str) -> str:
        """Why the log of the run shows that it did not come about there; empty if it did."""
        lines = _call_lines(log)
        if len(lines) < self.call.nth:
            return f"only {len(lines)} calls of {self.call.name} were made"
        hit = lines[self.call.nth - 1]
        text = _text(hit)
        if self.call.name not in MEMORY and not self.call.text.startswith(text.partition("0x")[0]):
            return f"call {self.call.nth} of {self.call.name} was another one: {text}"
        if self.error:
            happened = hit.endswith(_INJECTED) and (self.lasting or log.count(_INJECTED) == 1)
        else:
            happened = hit == lines[-1] and hit.endswith(" = ?") and _KILLED in log
        return "" if happened else f"strace did not inject it: {log[-300:]}"


def tracing(log: Path, options: list[str], *, as_grandchild: bool = False) -> list[str]:
    """The command line before that of a program; ``as_grandchild`` leaves the program its caller as parent."""
    quiet = ["-e", "quiet=attach,path-resolution", "-e", "verbose=none", "-o", str(log)]
    return [PROGRAM, *(["-D"] if as_grandchild else []), *quiet, *options]


def selecting(paths: tuple[Path, ...], names: tuple[str, ...]) -> list[str]:
    """The options that log only calls on ``paths``, and only those of ``names``; empty stands for all."""
    chosen = ["-e", f"trace={','.join(names)}"] if names else []
    for path in paths:
        chosen += ["-P", str(path)]
    return chosen


def calls_in(log: str) -> tuple[Call, ...]:
    """The calls that a log of ``tracing`` holds."""
    counts: dict[str, int] = {}
    calls: list[Call] = []
    for line in _call_lines(log):
        text = _text(line)
        name = text.partition("(")[0]
        counts[name] = counts.get(name, 0) + 1
        calls.append(Call(name=name, nth=counts[name], place=len(calls), text=text))
    return tuple(calls)


def is_whole(log: str) -> bool:
    """Whether the program's end stands in a log of ``tracing``, behind which nothing comes."""
    return bool(_END.match(log.rstrip("\n").rpartition("\n")[2]))


def why_unusable() -> str:
    """Why no fault can be injected on this machine; empty if one can."""
    for error, code in (("", -9), ("EIO", 1)):
        fault = Fault(Call("write", 1, 0, ""), error)
        probe = [*tracing(Path("/dev/null"), fault.options()), "echo"]
        try:
            done = subprocess.run(probe, capture_output=True, timeout=20, check=False, env={"PATH": PATH})
        except FileNotFoundError:
            return "strace is not installed"
        if done.returncode != code:
            said = done.stderr.decode(errors="replace").strip()[:200]
            return f"strace can't inject {error or 'SIGKILL'} here: exit code {done.returncode}, {said!r}"
    return ""


def _call_lines(log: str) -> list[str]:
    """The lines that stand for calls, without the process id that ``-f`` puts before them."""
    return [match[1] for match in map(_LINE.match, log.splitlines()) if match]


def _text(line: str) -> str:
    """A call without its result and its addresses; one that was killed lacks what is logged on return."""
    arguments = line.rpartition(" = ")[0].partition(" <unfinished ...>")[0]
    return _ADDRESS.sub("0x", arguments).rstrip(" ,")
