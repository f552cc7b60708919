"""Task executors for the races: real processes, ended by real SIGKILL, seen by one single-threaded observer.

A ``Crew`` starts them, asks them, reads their answers and kills them, one step after the other in one thread.
That order is what the verdicts rest on (``observer`` has the rules): an answer that was read was given before, and an
executor that was not yet sent its signal is alive.
"""

from __future__ import annotations

import ast
import contextlib
import heapq
import os
import select
import selectors
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO

from benchmarks.measure import answer

SOURCE = Path(__file__).resolve().parent.parent / "discovery"
SCRIPT = SOURCE / "bin" / "flink-gpu-discovery"
PYTHON = "/usr/bin/python3"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
_BODY = Path(__file__).resolve().with_name("task_executor.py")
# Flink gives up after 10 s; what hasn't answered by then and some more hangs.
_ANSWER_LIMIT_SECONDS = 60.0
_END_LIMIT_SECONDS = 30.0


class CrewError(Exception):
    """The races can't go on: an executor hangs, or ended by itself."""


@dataclass(frozen=True)
class Request:
    """A command for an executor to run, and the signal (0: none) to send to it after so many milliseconds."""

    words: tuple[str, ...]
    signal: int = 0
    after_milliseconds: float = 0.0

    def line(self) -> bytes:
        """As the executor reads it."""
        fields = (str(self.signal), f"{self.after_milliseconds:.3f}", *self.words)
        return ("\0".join(fields) + "\n").encode("utf-8")


@dataclass(frozen=True)
class Answer:
    """How a call ended, as its executor saw it; a negative status is the signal that ended it."""

    status: int
    milliseconds: float
    output: str
    errors: str


@dataclass(eq=False)
class Executor:
    """One task executor. ``identity`` can't be mistaken for a later process with the same PID."""

    process: subprocess.Popen[bytes]
    identity: tuple[int, int]
    asked_at: float | None = None
    unread: bytearray = field(default_factory=bytearray)

    @property
    def pid(self) -> int:
        """Its process id, which is the owner's."""
        return self.process.pid

    @property
    def busy(self) -> bool:
        """Whether a call of it is under way."""
        return self.asked_at is not None

    @property
    def output(self) -> IO[bytes]:
        """Where its answers come from."""
        assert self.process.stdout is not None
        return self.process.stdout

    def ask(self, request: Request) -> None:
        """Begin a call; its answer comes out of ``Crew.step``."""
        assert not self.busy
        assert self.process.stdin is not None
        self.asked_at = time.monotonic()
        self.process.stdin.write(request.line())

    def take_answers(self) -> list[Answer]:
        """The answers that have arrived."""
        piece = os.read(self.output.fileno(), 65536)
        if not piece:
            raise CrewError(f"executor {self.pid} ended by itself")
        self.unread += piece
        *lines, rest = bytes(self.unread).split(b"\n")
        self.unread = bytearray(rest)
        if lines:
            self.asked_at = None
        return [Answer(*ast.literal_eval(line.decode("ascii"))) for line in lines]


@dataclass(frozen=True)
class Step:
    """What has happened: answers in the order of reading, then the executors whose alarm went off."""

    answers: tuple[tuple[Executor, Answer], ...]
    alarms: tuple[Executor, ...]


class Crew:
    """``with Crew(environment) as crew: …``; on leaving, everything that it started has ended.

    ``package`` is a folder: calls are then forks that have the package loaded from there, see ``task_executor``.
    """

    def __init__(self, environment: Mapping[str, str], *, package: Path | None = None) -> None:
        self._environment = dict(environment)
        self._package = package
        self._selector = selectors.DefaultSelector()
        self._alarms: list[tuple[float, int, Executor]] = []
        # Everything started here, and started by that in turn, holds the writing end while it lives.
        self._all_gone, self._roll = os.pipe()
        self._hired = 0

    @property
    def hired(self) -> int:
        """How many executors have been started."""
        return self._hired

    @property
    def members(self) -> tuple[Executor, ...]:
        """Those that have not been ended."""
        return tuple([key.data for key in self._selector.get_map().values()])

    def hire(self) -> Executor:
        """Start an executor."""
        package = [str(self._package)] if self._package else []
        process = subprocess.Popen(
            [PYTHON, "-I", "-S", str(_BODY), *package],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            pass_fds=[self._roll],
            bufsize=0,
        )
        executor = Executor(process, (process.pid, _start_time(process.pid)))
        self._selector.register(executor.output, selectors.EVENT_READ, executor)
        self._hired += 1
        return executor

    def set_alarm(self, executor: Executor, seconds: float) -> None:
        """Have ``step`` name the executor once so much time has passed, if it hasn't been ended by then."""
        heapq.heappush(self._alarms, (time.monotonic() + seconds, id(executor), executor))

    def step(self, seconds: float) -> Step:
        """Wait at most so long for answers or alarms; answers that are there are read before any alarm is told."""
        if self._alarms:
            seconds = max(0.0, min(seconds, self._alarms[0][0] - time.monotonic()))
        answers: list[tuple[Executor, Answer]] = []
        for key, _ in self._selector.select(seconds):
            executor: Executor = key.data
            answers += [(executor, given) for given in executor.take_answers()]
        self._look_for_hanging()
        return Step(tuple(answers), tuple(self._due()))

    def kill(self, executor: Executor) -> None:
        """SIGKILL, and wait until it is gone. Its call goes on as an orphan, as it would on a host."""
        self._selector.unregister(executor.output)
        executor.process.kill()
        self._see_end(executor)

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._roll)
        try:
            for executor in self.members:
                executor.process.kill()
            for executor in self.members:
                self._see_end(executor)
            self._selector.close()
            self._see_orphans_end()
        finally:
            os.close(self._all_gone)

    def _see_end(self, executor: Executor) -> None:
        try:
            executor.process.wait(_END_LIMIT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise CrewError(f"executor {executor.pid} outlives its SIGKILL") from error
        executor.output.close()
        if executor.process.stdin:
            with contextlib.suppress(BrokenPipeError):
                executor.process.stdin.close()

    def _see_orphans_end(self) -> None:
        poll = select.poll()
        poll.register(self._all_gone, select.POLLIN)
        if not poll.poll(_END_LIMIT_SECONDS * 1000):
            raise CrewError("a call outlives its executor by more than the limit that it has itself")

    def _due(self) -> list[Executor]:
        due: list[Executor] = []
        while self._alarms and self._alarms[0][0] <= time.monotonic():
            executor = heapq.heappop(self._alarms)[2]
            if executor.process.returncode is None and executor not in due:
                due.append(executor)
        return due

    def _look_for_hanging(self) -> None:
        for executor in self.members:
            if executor.asked_at and time.monotonic() - executor.asked_at > _ANSWER_LIMIT_SECONDS:
                raise CrewError(f"a call of executor {executor.pid} hangs for {_ANSWER_LIMIT_SECONDS:g} s")


def compile_package() -> None:
    """Have the script's modules compiled, as an installed one's are."""
    answer((PYTHON, "-I", "-m", "compileall", "-q", str(SOURCE / "flink_gpu_discovery")), {})


def _start_time(pid: int) -> int:
    """Field 22 of proc_pid_stat(5): clock ticks since boot."""
    content = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return int(content.rpartition(") ")[2].split()[19])
