"""``deallocateAll`` and ``reclaim``: give GPUs back, by owner or for every owner that has ended."""

from __future__ import annotations

import os

from flink_gpu_discovery import allocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.models import Record
    from flink_gpu_discovery.operations.context import Context


def deallocate_all(context: Context) -> None:
    """FLIP-108's second function: remove the owner's records. Does nothing without coordination."""
    if not context.options.coordinate:
        return
    from flink_gpu_discovery.ledger.store import Ledger

    owner = context.processes.owner(context.options.owner_pid or os.getppid())
    ledger = Ledger(context.options.ledger)
    if not ledger.exists():
        return
    with ledger.lock(context.deadline):
        before = ledger.read()
        after = allocation.without_owner(before, owner)
        if len(after) < len(before):
            context.deadline.check("before giving back the GPUs")
            ledger.replace(before, after)


def reclaim(context: Context) -> tuple[Record, ...]:
    """Remove the records of owners that are proven dead; returns them."""
    from flink_gpu_discovery.ledger.store import Ledger

    ledger = Ledger(context.options.ledger)
    if not ledger.exists():
        return ()
    with ledger.lock(context.deadline):
        before = ledger.read()
        dead = {record.owner.identity for record in before if context.processes.is_dead(record.owner)}
        freed = tuple([record for record in before if record.owner.identity in dead])
        if freed:
            context.deadline.check("before giving back the GPUs")
            ledger.replace(before, tuple([record for record in before if record.owner.identity not in dead]))
    return freed
