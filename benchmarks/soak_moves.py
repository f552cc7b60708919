"""What an owner does next in the soak, and what its answer must be. Pure."""

from __future__ import annotations

import random
import signal
from dataclasses import dataclass
from enum import Enum

MOST_GPUS = 3
_DONE, _BAD_USAGE, _TOO_FEW, _TRY_AGAIN = 0, 64, 69, 75


class Kind(Enum):
    """The operations; ``OTHER_AMOUNT`` asks for a number of GPUs that the owner doesn't have."""

    ALLOCATE = "allocate"
    REPEAT = "repeated allocate"
    OTHER_AMOUNT = "allocate of another amount"
    DEALLOCATE = "deallocateAll"
    RECLAIM = "reclaim"
    STATUS = "status"


@dataclass(frozen=True)
class Claim:
    """What an owner has: these GPUs; or, where ``gpus`` is None, ``amount`` of them or none, nobody knows."""

    amount: int = 0
    gpus: frozenset[str] | None = frozenset()


NOTHING = Claim()
_SHARES: dict[Kind, dict[str, int]] = {
    Kind.ALLOCATE: {"nothing": 70, "unsure": 45},
    Kind.REPEAT: {"certain": 25},
    Kind.OTHER_AMOUNT: {"certain": 5},
    Kind.DEALLOCATE: {"nothing": 8, "unsure": 35, "certain": 45},
    Kind.RECLAIM: {"nothing": 12, "unsure": 10, "certain": 15},
    Kind.STATUS: {"nothing": 10, "unsure": 10, "certain": 10},
}


@dataclass(frozen=True)
class Move:
    """An operation of an owner, and the signal (0: none) that it is to get."""

    kind: Kind
    words: tuple[str, ...]
    amount: int = 0
    check_dead: bool = False
    signal: int = 0


@dataclass(frozen=True)
class Outcome:
    """What the owner has after an answer; ``fault`` says what was wrong with that, empty if nothing was."""

    claim: Claim
    fault: str = ""


@dataclass(frozen=True)
class Dice:
    """What a move is drawn with; the shares are of all operations."""

    random: random.Random
    script_kills: float
    script_terms: float

    def move(self, claim: Claim, options: tuple[str, ...]) -> Move:
        """Something that makes sense for an owner with this claim; ``options`` go with every command."""
        mood = "unsure" if claim.gpus is None else "certain" if claim.amount else "nothing"
        shares = {kind: share[mood] for kind, share in _SHARES.items() if mood in share}
        (kind,) = self.random.choices(list(shares), list(shares.values()))
        if kind in (Kind.ALLOCATE, Kind.REPEAT, Kind.OTHER_AMOUNT):
            return self._allocation(kind, claim, options)
        words = (kind.value, *options, *(["--json"] if kind is Kind.STATUS else []))
        return Move(kind, words, signal=self._signal())

    def _allocation(self, kind: Kind, claim: Claim, options: tuple[str, ...]) -> Move:
        amount = claim.amount or self.random.randint(1, MOST_GPUS)
        if kind is Kind.OTHER_AMOUNT:
            amount = amount % MOST_GPUS + 1
        check_dead = self.random.random() < 0.7
        wait = ("--wait", "0.2") if self.random.random() < 0.02 else ()
        words = ("allocate", str(amount), *options, *(["--check-dead"] if check_dead else []), *wait)
        return Move(kind, words, amount, check_dead, self._signal())

    def _signal(self) -> int:
        drawn = self.random.random()
        if drawn < self.script_kills:
            return signal.SIGKILL
        return signal.SIGTERM if drawn < self.script_kills + self.script_terms else 0


def settle(claim: Claim, move: Move, status: int, output: str, errors: str) -> Outcome:
    """What an owner with ``claim`` has once ``move`` ended so; a negative status is the signal that ended it."""
    if "may stay recorded" in errors:
        return Outcome(Claim(move.amount, None), "it could not undo what it had begun")
    if status < 0:
        fault = "" if status == -move.signal else f"signal {-status}, which nobody sent"
        return Outcome(_after_kill(claim, move), fault)
    if move.signal == signal.SIGTERM and status == _TRY_AGAIN:
        return Outcome(_after_term(claim, move))
    if move.kind is Kind.OTHER_AMOUNT:
        return _expect(_BAD_USAGE, status, claim)
    if move.kind is Kind.DEALLOCATE:
        return _expect(_DONE, status, NOTHING)
    if move.kind in (Kind.RECLAIM, Kind.STATUS):
        return _expect(_DONE, status, claim)
    return _after_allocation(claim, move, status, output)


def _expect(wanted: int, status: int, claim: Claim) -> Outcome:
    return Outcome(claim, "" if status == wanted else f"status {status} instead of {wanted}")


def _after_kill(claim: Claim, move: Move) -> Claim:
    """A killed call came to all or nothing; one that changes nothing changed nothing."""
    if move.kind is Kind.ALLOCATE:
        return Claim(move.amount, None)
    if move.kind is Kind.DEALLOCATE and claim.amount:
        return Claim(claim.amount, None)
    return claim


def _after_term(claim: Claim, move: Move) -> Claim:
    """A call that tells of its SIGTERM has undone its allocation."""
    return claim if move.kind is Kind.ALLOCATE else _after_kill(claim, move)


def _after_allocation(claim: Claim, move: Move, status: int, output: str) -> Outcome:
    if move.kind is Kind.ALLOCATE and status == _TOO_FEW:
        return Outcome(NOTHING)
    if status != _DONE:
        return Outcome(claim, f"status {status}")
    words = output.strip().split(",")
    gpus = frozenset(words)
    if not len(gpus) == len(words) == move.amount:
        return Outcome(Claim(move.amount, None), f"{output!r} is no answer to {move.amount}")
    changed = move.kind is Kind.REPEAT and gpus != claim.gpus
    return Outcome(Claim(move.amount, gpus), f"{output!r} instead of {sorted(claim.gpus or [])}" if changed else "")
