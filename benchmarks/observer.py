"""The judge of the races: who holds which GPU for certain, and who may hold how many. Pure bookkeeping.

**Double grant.** An owner *holds* a GPU from the moment at which its answer was read until SIGKILL is sent to it or a
``deallocateAll`` of it begins, whichever comes first. It was granted before its answer could be read, and it is alive
until the signal is sent, so this time lies within the true one. A grant is double if at its reading another owner
holds one of its GPUs: then both are alive, both have been told that the GPU is theirs, and neither has given it back.
No order of events allows that to a correct script, however late answers are read or deaths are noticed, so nothing is
counted that isn't so. Some that are so aren't counted: where the earlier owner was sent its signal before the later
one's answer was read, the takeover may have been rightful.

**Refused though free.** An owner *may hold* what it asks for from before its call begins until the call is refused, a
``deallocateAll`` is answered, or its death was observed (it was waited for). What is held at any instant is at most the
sum of that. A refusal is wrong if throughout the call so few GPUs may have been held by others that enough were left:
whenever the script decided, it could have granted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass


@dataclass
class _Call:
    """An allocation under way; ``most_held`` is the most that others may have held since it began."""

    amount: int
    most_held: int


class Observer:
    """Told of everything in the order in which it happened; owners are whatever can be a key."""

    def __init__(self, gpus: int) -> None:
        self._gpus = gpus
        self._holds: dict[Hashable, frozenset[str]] = {}
        self._may_hold: dict[Hashable, int] = {}
        self._calls: dict[Hashable, _Call] = {}

    def asks(self, owner: Hashable, amount: int) -> None:
        """Tell before the call begins. A repeated one counts once, since it is to come to the same GPUs."""
        self._may_hold[owner] = max(amount, self._may_hold.get(owner, 0))
        self._calls[owner] = _Call(amount, self._held_by_others(owner))
        for other, call in self._calls.items():
            call.most_held = max(call.most_held, self._held_by_others(other))

    def granted(self, owner: Hashable, gpus: Iterable[str]) -> dict[str, Hashable]:
        """Tell when the answer was read; the GPUs that another owner holds, with that owner."""
        self._calls.pop(owner, None)
        self._holds[owner] = frozenset(gpus)
        return {
            gpu: other
            for other, held in self._holds.items()
            for gpu in sorted(held & self._holds[owner])
            if other != owner
        }

    def refused(self, owner: Hashable) -> bool:
        """Tell when the refusal was read; whether it was wrong. The owner holds nothing then."""
        call = self._calls.pop(owner)
        self.released(owner)
        return self._gpus - call.most_held >= call.amount

    def unanswered(self, owner: Hashable) -> None:
        """Tell when the call itself was killed: whether it came to anything is unknown."""
        self._calls.pop(owner, None)

    def releases(self, owner: Hashable) -> None:
        """Tell before a ``deallocateAll`` begins."""
        self._holds.pop(owner, None)

    def released(self, owner: Hashable) -> None:
        """Tell when the answer to ``deallocateAll`` was read."""
        self._holds.pop(owner, None)
        self._may_hold.pop(owner, None)

    def kills(self, owner: Hashable) -> None:
        """Tell before the signal is sent."""
        self._holds.pop(owner, None)
        self._calls.pop(owner, None)

    def killed(self, owner: Hashable) -> None:
        """Tell when the death was observed."""
        self._may_hold.pop(owner, None)

    def held(self, owner: Hashable) -> frozenset[str]:
        """What the owner holds for certain."""
        return self._holds.get(owner, frozenset())

    def _held_by_others(self, owner: Hashable) -> int:
        return sum([amount for other, amount in self._may_hold.items() if other != owner])
