"""Watch the ledger of a soak: whether it is whole, and says what must be so by now.

It is read without its lock while calls are under way, so each rule holds at every instant:

- it is whole;
- an owner that was granted GPUs, is alive and hasn't begun to give them back is recorded with exactly these;
- an owner that has none, and no allocation under way, is recorded with none;
- otherwise an owner is recorded with all that it asked for, or with none;
- nobody else is recorded but owners that have ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.executors import Executor
from benchmarks.ledger_text import TornLedgerError, read_ledger
from benchmarks.soak_moves import NOTHING, Claim, Kind, Move

_MOST_FAULTS = 50

Identity = tuple[int, int]
Recorded = dict[Identity, frozenset[str]]


@dataclass
class Owner:
    """An executor, what it has, what it does just now, and how its last call ended."""

    executor: Executor
    claim: Claim = NOTHING
    move: Move | None = None
    last: str = "nothing"


@dataclass
class Record:
    """What has happened in a soak."""

    operations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def fault(self, what: str) -> None:
        """Note that something was wrong; after the first of them, more of the same say little."""
        if len(self.faults) < _MOST_FAULTS:
            self.faults.append(f"operation {self.operations}: {what}")


class LedgerWatch:
    """Reads the ledger at ``path`` and notes every fault in ``record``."""

    def __init__(self, path: Path, record: Record) -> None:
        self._path = path
        self._record = record
        self._ended: set[Identity] = set()

    def ended(self, identity: Identity) -> None:
        """Tell that an owner is dead; whatever it is recorded with is right from now on."""
        self._ended.add(identity)

    def read(self) -> Recorded:
        """The indexes that each owner is recorded with; those without are left out."""
        self._record.counts["ledgers read"] += 1
        try:
            holdings = read_ledger(self._path) or ()
        except TornLedgerError as error:
            self._record.fault(f"the ledger is not whole: {error}")
            holdings = ()
        owners = {one.owner for one in holdings}
        return {owner: frozenset([one.index for one in holdings if one.owner == owner]) for owner in owners}

    def check(self, owners: Iterable[Owner]) -> Recorded:
        """Hold what is recorded against what these owners, all that live, may have."""
        recorded = self.read()
        strangers = set(recorded) - self._ended
        for owner in owners:
            identity = owner.executor.identity
            strangers.discard(identity)
            found = recorded.get(identity, frozenset())
            if not _fits(owner, found):
                has = "?" if owner.claim.gpus is None else sorted(owner.claim.gpus)
                doing = owner.move.kind.value if owner.move else "nothing"
                self._record.fault(
                    f"{identity} has {has}, does {doing}, is recorded with {sorted(found)}; before: {owner.last}"
                )
        if strangers:
            self._record.fault(f"recorded, but no owner: {sorted(strangers)}")
        return recorded

    def check_folder(self) -> None:
        """While nothing runs, after a change or ``reclaim``: the ledger and its lock, and nothing else."""
        left = sorted([path.name for path in self._path.parent.iterdir()])
        if left != sorted([self._path.name, f"{self._path.name}.lock"]):
            self._record.fault(f"left in the folder: {left}")


def _fits(owner: Owner, found: frozenset[str]) -> bool:
    """Whether what is recorded of an owner can be so."""
    claim, move = owner.claim, owner.move
    changes = move is not None and move.kind in (Kind.ALLOCATE, Kind.DEALLOCATE)
    if claim.gpus is not None and not changes:
        return found == claim.gpus
    if claim.gpus:
        return found in (frozenset(), claim.gpus)
    asked = max(claim.amount, move.amount if move else 0)
    return len(found) in (0, asked)
