"""Owners that call our script at random, are killed at random, and are watched all the while.

Some owners at a time, each a process with at most one call under way. Now and then a call is sent a signal at a random
moment, or the owner is killed and a new one takes its place. After every answer ``soak_ledger`` reads the ledger,
independently of the package, and holds it against what is certain; ``observer`` judges double grants and refusals. At
every checkpoint nothing runs; then all that live owners don't hold must be granted to one that asks for it, and one
more GPU must be refused. At the end all owners are dead, ``reclaim`` must free everything, so that one owner is granted
all GPUs, and the folder may hold the ledger and its lock only.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.executors import SCRIPT, SOURCE, SYSTEM_PATH, Answer, Crew, Executor, Request
from benchmarks.observer import Observer
from benchmarks.soak_ledger import LedgerWatch, Owner, Record
from benchmarks.soak_moves import NOTHING, Dice, Kind, Move, settle

_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": SYSTEM_PATH}
_TOO_MANY_FAULTS = 10
_PROGRESS_SECONDS = 15.0
_STEP_SECONDS = 5.0


@dataclass(frozen=True)
class Plan:
    """How much of what; the shares are of all operations."""

    folder: Path
    operations: int
    owners: int = 8
    gpus: int = 12
    forks: bool = False
    script_kills: float = 0.35
    script_terms: float = 0.08
    owner_kills: float = 0.05
    between_checkpoints: int = 500
    seconds: float = 3600.0
    seed: int = 0
    script: Path = SCRIPT

    @property
    def ledger(self) -> Path:
        """In a folder of its own, which the first call makes."""
        return self.folder / "state" / "ledger"


class Soak:
    """``Soak(plan).run()``; its ``record`` says what was seen, which is all well if it has no faults."""

    def __init__(self, plan: Plan, progress: Callable[[Record], None] = lambda _: None) -> None:
        self.record = Record()
        self._plan = plan
        self._progress = progress
        self._dice = Dice(random.Random(plan.seed), plan.script_kills, plan.script_terms)
        self._observer = Observer(plan.gpus)
        self._owners: dict[Executor, Owner] = {}
        self._ledger = LedgerWatch(plan.ledger, self.record)
        self._typical_milliseconds = 50.0
        self._started = self._told = time.monotonic()
        self._options = ("--backend", f"simulated:{plan.gpus}", "--ledger", str(plan.ledger))

    def run(self) -> Record:
        """Until the operations are done, the time is up, or too much is wrong."""
        with self._crew() as crew:
            for _ in range(self._plan.owners):
                self._hire(crew)
            while self._goes_on():
                self._round(crew, min(self._plan.between_checkpoints, self._plan.operations - self.record.operations))
                self._checkpoint(crew)
            for executor in tuple(self._owners):
                self._kill(crew, executor)
        # Now even the orphans have ended.
        with self._crew() as crew:
            self._end(crew)
        self.record.seconds = time.monotonic() - self._started
        return self.record

    def _crew(self) -> Crew:
        return Crew(_ENVIRONMENT, package=SOURCE if self._plan.forks else None)

    def _goes_on(self) -> bool:
        in_time = time.monotonic() - self._started < self._plan.seconds
        done = self.record.operations >= self._plan.operations
        return in_time and not done and len(self.record.faults) < _TOO_MANY_FAULTS

    def _hire(self, crew: Crew) -> Owner:
        owner = Owner(crew.hire())
        self._owners[owner.executor] = owner
        return owner

    def _round(self, crew: Crew, operations: int) -> None:
        """So many operations, begun one after the other and running side by side, to the end of all of them."""
        last = self.record.operations + operations
        while self.record.operations < last or any([executor.busy for executor in self._owners]):
            idle = [owner for owner in self._owners.values() if not owner.executor.busy]
            for owner in idle[: last - self.record.operations]:
                self._begin(crew, owner)
            step = crew.step(_STEP_SECONDS)
            for executor, answer in step.answers:
                self._finish(self._owners[executor], answer)
            for executor in step.alarms:
                self._replace(crew, executor)
            self._tell()

    def _begin(self, crew: Crew, owner: Owner) -> None:
        self.record.operations += 1
        move = owner.move = self._dice.move(owner.claim, self._options)
        if move.kind in (Kind.ALLOCATE, Kind.REPEAT):
            self._observer.asks(owner.executor, move.amount)
        elif move.kind is Kind.DEALLOCATE:
            self._observer.releases(owner.executor)
        after = self._dice.random.uniform(0, 1.2 * self._typical_milliseconds)
        owner.executor.ask(Request(self._words(move.words), move.signal, after))
        if self._dice.random.random() < self._plan.owner_kills:
            crew.set_alarm(owner.executor, self._dice.random.uniform(0, 1.5 * self._typical_milliseconds / 1000))

    def _words(self, words: tuple[str, ...]) -> tuple[str, ...]:
        return words if self._plan.forks else (str(self._plan.script), *words)

    def _finish(self, owner: Owner, answer: Answer) -> None:
        move = owner.move
        assert move is not None
        outcome = settle(owner.claim, move, answer.status, answer.output, answer.errors)
        owner.claim, owner.move, owner.last = outcome.claim, None, _summary(move, answer)
        if outcome.fault:
            self.record.fault(f"{owner.executor.identity}: {outcome.fault}: {owner.last}")
        self._observe(owner, move, answer.status)
        recorded = self._ledger.check(self._owners.values())
        self.record.counts["calls killed after they had recorded"] += bool(
            answer.status < 0 and move.kind is Kind.ALLOCATE and owner.executor.identity in recorded
        )
        self._count(move, answer)

    def _observe(self, owner: Owner, move: Move, status: int) -> None:
        """Tell the observer, and hear its verdict."""
        executor = owner.executor
        if move.kind not in (Kind.ALLOCATE, Kind.REPEAT):
            if owner.claim == NOTHING:
                self._observer.released(executor)
            return
        if status == 0 and owner.claim.gpus:
            clashes = self._observer.granted(executor, owner.claim.gpus)
            if clashes:
                self.record.fault(f"double grant to {executor.identity}: {sorted(clashes)}")
        elif status == 69:
            if self._observer.refused(executor) and move.check_dead:
                self.record.fault(f"{executor.identity} was refused {move.amount} though enough were free")
        else:
            self._observer.unanswered(executor)

    def _count(self, move: Move, answer: Answer) -> None:
        counts = self.record.counts
        counts[move.kind.value] += 1
        if answer.status < 0:
            counts["calls ended by SIGKILL" if answer.status == -9 else "calls ended by SIGTERM"] += 1
        elif move.signal and answer.status == 75:
            counts["calls ended by SIGTERM"] += 1
        elif not move.signal:
            self._typical_milliseconds += 0.02 * (answer.milliseconds - self._typical_milliseconds)
        counts["refused: too few free"] += answer.status == 69
        counts["took over from dead owners"] += "was taken over from" in answer.errors

    def _replace(self, crew: Crew, executor: Executor) -> None:
        self._kill(crew, executor)
        self._hire(crew)

    def _kill(self, crew: Crew, executor: Executor) -> None:
        self.record.counts["owners killed"] += 1
        self.record.counts["owners killed in the middle of a call"] += executor.busy
        del self._owners[executor]
        self._observer.kills(executor)
        crew.kill(executor)
        self._observer.killed(executor)
        self._ledger.ended(executor.identity)

    def _checkpoint(self, crew: Crew) -> None:
        """While nothing else runs: whatever live owners don't hold can be had, and no more."""
        self.record.counts["checkpoints"] += 1
        recorded = self._ledger.check(self._owners.values())
        held = [gpu for executor in self._owners for gpu in recorded.get(executor.identity, ())]
        everything = {str(index) for index in range(self._plan.gpus)}
        probe = self._hire(crew).executor
        rest = everything - set(held)
        if rest:
            answer = self._call(crew, probe, "allocate", str(len(rest)), "--check-dead")
            if answer.status != 0 or set(answer.output.strip().split(",")) != rest:
                self.record.fault(f"checkpoint: {len(rest)} GPUs were free, {answer}")
        answer = self._call(crew, probe, "allocate", "1", "--check-dead", "--resource", "more")
        if answer.status != 69:
            self.record.fault(f"checkpoint: nothing was free, {answer}")
        self._kill(crew, probe)

    def _end(self, crew: Crew) -> None:
        """All owners are dead, and nothing else runs."""
        probe = self._hire(crew).executor
        self._reclaim_all(crew, probe)
        answer = self._call(crew, probe, "allocate", str(self._plan.gpus))
        if answer.status != 0:
            self.record.fault(f"at the end not every GPU is free: {answer}")
        self._kill(crew, probe)
        self._reclaim_all(crew, self._hire(crew).executor)

    def _reclaim_all(self, crew: Crew, probe: Executor) -> None:
        answer = self._call(crew, probe, "reclaim")
        left = self._ledger.read()
        if answer.status != 0 or left:
            self.record.fault(f"reclaim left {left}: {answer}")
        self._ledger.check_folder()

    def _call(self, crew: Crew, executor: Executor, *words: str) -> Answer:
        """One call while nothing else runs; owners whose alarm goes off meanwhile are spared."""
        executor.ask(Request(self._words((*words, *self._options))))
        while True:
            step = crew.step(_STEP_SECONDS)
            if step.answers:
                return step.answers[0][1]

    def _tell(self) -> None:
        if time.monotonic() - self._told >= _PROGRESS_SECONDS:
            self._told = time.monotonic()
            self.record.seconds = self._told - self._started
            self._progress(self.record)


def _summary(move: Move, answer: Answer) -> str:
    signalled = f" (signal {move.signal})" if move.signal else ""
    said = (answer.output + answer.errors).strip()[:300]
    return f"{' '.join(move.words[:2])}{signalled}: status {answer.status} in {answer.milliseconds:.0f} ms: {said!r}"
