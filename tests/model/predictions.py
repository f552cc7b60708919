"""What each call must answer and leave in the ledger: the model, written from the contract alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from tests.model.cards import Seen
from tests.model.values import DEAD, DONE, TOO_FEW, USAGE, Held, Owner, Records, in_file_order

Liveness = Callable[[Owner], str]


@dataclass(frozen=True)
class Grant:
    """``given`` are the GPUs printed, ``newly`` those among them that were not the caller's before."""

    code: int
    records: Records
    given: tuple[Seen, ...] = ()
    newly: tuple[Seen, ...] = ()

    @property
    def out(self) -> str:
        """Standard output: the present indexes, ascending."""
        return ",".join([str(gpu.index) for gpu in self.given]) + "\n" if self.given else ""


@dataclass(frozen=True)
class Reclaimed:
    """``freed`` in the order in which they are told."""

    code: int
    records: Records
    freed: tuple[Held, ...] = ()


def allocate(
    records: Records,
    gpus: Sequence[Seen],
    caller: Owner,
    resource: str,
    amount: int,
    *,
    check_dead: bool,
    liveness: Liveness,
) -> Grant:
    """``gpus`` are the healthy ones as they are now, in any order."""
    own = {uuid for uuid, held in records.items() if held.owner == caller and held.resource == resource}
    healthy = sorted(gpus, key=lambda gpu: gpu.index)
    if amount == 0:
        return Grant(DONE, records)
    if own and len(own) != amount:
        return Grant(USAGE, records)
    if own:
        given = tuple(gpu for gpu in healthy if gpu.uuid in own)
        return Grant(DONE, records, given) if len(given) == amount else Grant(TOO_FEW, records)
    chosen = available(records, healthy, liveness, check_dead=check_dead)[:amount]
    if len(chosen) < amount:
        return Grant(TOO_FEW, records)
    given = tuple(sorted(chosen, key=lambda gpu: gpu.index))
    granted = {gpu.uuid: Held(gpu.uuid, gpu.index, gpu.pci_address, resource, caller) for gpu in given}
    return Grant(DONE, {**records, **granted}, given, given)


def available(records: Records, gpus: Sequence[Seen], liveness: Liveness, *, check_dead: bool) -> list[Seen]:
    """What may be handed out, in the order in which it is: free ones, then those of dead owners."""
    healthy = sorted(gpus, key=lambda gpu: gpu.index)
    free = [gpu for gpu in healthy if gpu.uuid not in records]
    orphaned = [gpu for gpu in healthy if gpu.uuid in records and liveness(records[gpu.uuid].owner) == DEAD]
    return [*free, *orphaned] if check_dead else free


def deallocate_all(records: Records, caller: Owner) -> Records:
    """What is left."""
    return {uuid: held for uuid, held in records.items() if held.owner != caller}


def reclaim(
    records: Records,
    *,
    picked: Callable[[Held], bool] | None,
    force: bool,
    liveness: Liveness,
    unjudged: Set[str],
) -> Reclaimed:
    """Without ``picked`` every dead owner's GPUs; with it all that it names, or none.

    ``unjudged`` are the UUIDs of which nobody can tell whether anything uses them.
    """
    named = [held for held in in_file_order(records) if picked is None or picked(held)]
    freed = tuple(held for held in named if force or (liveness(held.owner) == DEAD and held.uuid not in unjudged))
    if picked is not None and (not named or len(freed) < len(named)):
        return Reclaimed(USAGE, records)
    uuids = {held.uuid for held in freed}
    return Reclaimed(DONE, {uuid: held for uuid, held in records.items() if uuid not in uuids}, freed)
