"""Let task executors come and go on one discovery script, or on several in turns, and count what happens.

A task executor asks for its GPUs, holds them for a random while and is ended by SIGKILL; a part of them is killed
soon after asking instead. Its successor starts as soon as its death was observed. The verdicts are ``observer``'s.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.executors import SCRIPT, SYSTEM_PATH, Answer, Crew, Executor, Request
from benchmarks.observer import Observer
from tests.standins.nvidia_smi import NvidiaSmi, SmiGpu, install

UPSTREAM_SCRIPT = Path("plugins", "external-resource-gpu", "nvidia-gpu-discovery.sh")
FLINK_LIMIT_MILLISECONDS = 10_000.0
_TURN_SECONDS = 10.0
_LONGEST_HOLD_SECONDS = 0.2
_DOOMED_SHARE = 0.2
_DOOM_SECONDS = 0.5


@dataclass(frozen=True)
class Churn:
    """How many come and go, on how many GPUs."""

    executors: int = 8
    gpus_each: int = 2
    gpus: int = 16


@dataclass(frozen=True)
class Contender:
    """A discovery script with its arguments; ``refusal`` is its exit status when there are too few GPUs."""

    label: str
    script: Path
    options: tuple[str, ...]
    refusal: int

    def words(self, amount: int) -> tuple[str, ...]:
        """The call for so many GPUs, as every released Flink makes it."""
        return (str(self.script), str(amount), *self.options)


@dataclass
class Tally:
    """What was seen of one contender."""

    granted: int = 0
    double: int = 0
    refused: int = 0
    refused_though_free: int = 0
    failed: int = 0
    killed_asking: int = 0
    late: int = 0
    seconds: float = 0.0
    milliseconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def percentile(self, share: float) -> float | None:
        """By the nearest rank; None if nothing was answered."""
        ordered = sorted(self.milliseconds)
        return ordered[math.ceil(share * len(ordered)) - 1] if ordered else None


class Race:
    """One contender's turns: each starts with all executors anew, on the assignment file of the turn before."""

    def __init__(self, churn: Churn, contender: Contender, environment: dict[str, str], seed: int) -> None:
        self.tally = Tally()
        self._churn = churn
        self._contender = contender
        self._environment = environment
        self._random = random.Random(seed)

    def turn(self, seconds: float) -> None:
        """Let them churn for so long."""
        observer = Observer(self._churn.gpus)
        with Crew(self._environment) as crew:
            for _ in range(self._churn.executors):
                self._ask(crew, observer, crew.hire())
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                step = crew.step(end - time.monotonic())
                for executor, given in step.answers:
                    self._note(observer, executor, given)
                    crew.set_alarm(executor, self._random.uniform(0, _LONGEST_HOLD_SECONDS))
                for executor in step.alarms:
                    self._replace(crew, observer, executor)
            for executor in crew.members:
                observer.kills(executor)
        self.tally.seconds += seconds

    def _ask(self, crew: Crew, observer: Observer, executor: Executor) -> None:
        observer.asks(executor, self._churn.gpus_each)
        executor.ask(Request(self._contender.words(self._churn.gpus_each)))
        if self._random.random() < _DOOMED_SHARE:
            crew.set_alarm(executor, self._random.uniform(0, _DOOM_SECONDS))

    def _replace(self, crew: Crew, observer: Observer, executor: Executor) -> None:
        self.tally.killed_asking += executor.busy
        observer.kills(executor)
        crew.kill(executor)
        observer.killed(executor)
        self._ask(crew, observer, crew.hire())

    def _note(self, observer: Observer, executor: Executor, given: Answer) -> None:
        tally = self.tally
        tally.milliseconds.append(given.milliseconds)
        tally.late += given.milliseconds > FLINK_LIMIT_MILLISECONDS
        gpus = given.output.strip().split(",") if given.status == 0 else []
        if len(set(gpus)) == len(gpus) == self._churn.gpus_each:
            tally.granted += 1
            tally.double += bool(observer.granted(executor, gpus))
        elif given.status == self._contender.refusal:
            tally.refused += 1
            tally.refused_though_free += observer.refused(executor)
        else:
            tally.failed += 1
            observer.unanswered(executor)
            tally.faults.append(f"status {given.status}, output {given.output!r}: {given.errors.strip()[:200]}")


def race(churn: Churn, contenders: tuple[Contender, ...], *, folder: Path, seconds: float, seed: int) -> list[Tally]:
    """Let the contenders churn in turns until each had so many seconds; ``folder`` takes the stand-in."""
    install(folder, NvidiaSmi(tuple([_gpu(index) for index in range(churn.gpus)])))
    environment = {"LANG": "C.UTF-8", "PATH": f"{folder}:{SYSTEM_PATH}"}
    races = [Race(churn, contender, environment, seed) for contender in contenders]
    turns = max(1, round(seconds / _TURN_SECONDS))
    for _ in range(turns):
        for one in races:
            one.turn(seconds / turns)
    return [one.tally for one in races]


def _gpu(index: int) -> SmiGpu:
    return SmiGpu(index, f"GPU-51301a7e-0000-4000-8000-{index:012x}", pci=f"00000000:{index:02X}:00.0")


def ours(ledger: Path) -> Contender:
    """Our script, with the options that make it do what upstream's does."""
    options = ("--backend", "nvidia-smi", "--ledger", str(ledger), "--check-dead")
    return Contender("ours", SCRIPT, options, refusal=69)


def upstreams(home: Path, file: Path) -> Contender:
    """The script that the Flink in ``home`` brings along."""
    options = ("--enable-coordination-mode", "--coordination-file", str(file))
    return Contender("upstream", home / UPSTREAM_SCRIPT, options, refusal=1)
