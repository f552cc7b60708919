"""``deallocateAll``: FLIP-108's second function, which an owner calls for itself."""

from __future__ import annotations

import os

from flink_gpu_discovery import allocation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.operations.context import Context


def deallocate_all(context: Context) -> None:
    """Remove all of the owner's records. Does nothing without coordination, or without a ledger."""
    if not context.options.coordinate:
        return
    from flink_gpu_discovery.ledger.store import Ledger

    owner = context.processes.owner(context.options.owner_pid or os.getppid())
    ledger = Ledger(context.options.ledger, context.host)
    if not ledger.exists():
        return
    if context.options.migrate_upstream:
        from flink_gpu_discovery.operations.migrate import migrate

        migrate(context, ledger)
    with ledger.lock(context.deadline) as lock:
        before = ledger.read()
        after = allocation.without_owner(before, owner)
        if len(after) < len(before):
            context.deadline.check("before giving back the GPUs")
            ledger.replace(lock, after)
