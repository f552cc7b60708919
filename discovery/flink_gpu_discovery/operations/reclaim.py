"""``reclaim``: free the GPUs of owners that have ended, and those that an operator names."""

from __future__ import annotations

from flink_gpu_discovery.errors import SystemRefusedError, UsageError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.ledger.store import Ledger
from flink_gpu_discovery.operations.leftovers import still_used
from flink_gpu_discovery.processes import DEAD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.models import Gpu, Identity, Record
    from flink_gpu_discovery.operations.context import Context


class Reclaimed:
    """The records that were ``freed``, each owner's ``liveness`` by its identity, and notes on those ``kept``."""

    __slots__ = ("freed", "kept", "liveness")

    def __init__(self, freed: tuple[Record, ...], liveness: dict[Identity, str], kept: tuple[str, ...]) -> None:
        self.freed: Final = freed
        self.liveness: Final = liveness
        self.kept: Final = kept


def reclaim(context: Context) -> Reclaimed:
    """Remove the records of owners that are proven dead and whose GPUs nothing uses any more.

    With ``--owner`` or ``--gpu`` only those, all of them or none; with ``--force`` these even if their owner is
    alive or something uses them. ``UsageError`` if what is named isn't recorded or may not be freed.
    """
    ledger = Ledger(context.options.ledger, context.host)
    if not ledger.exists():
        _named(context, ())
        return Reclaimed((), {}, ())
    gpus = _gpus(context)
    with ledger.lock(context.deadline) as lock:
        before = ledger.read()
        named = _named(context, before)
        liveness = {record.owner.identity: context.processes.liveness(record.owner) for record in named}
        against = {record.uuid: _against(context, record, liveness, gpus) for record in named}
        freed = tuple([record for record in named if not against[record.uuid]])
        kept = tuple(
            [f"GPU {record.index} is kept: {against[record.uuid]}" for record in named if against[record.uuid]]
        )
        if kept and context.options.picks_some:
            raise UsageError("; ".join(kept[:4]), "--force frees it all the same")
        if freed:
            context.deadline.check("before giving back the GPUs")
            uuids = {record.uuid for record in freed}
            ledger.replace(lock, tuple([record for record in before if record.uuid not in uuids]))
        ledger.remove_leftover()
    return Reclaimed(freed, liveness, tuple([note for note in kept if "still used" in note]))


def _gpus(context: Context) -> dict[str, Gpu]:
    """The GPUs by UUID, asked for before the lock is taken; none where there is no driver that could use them."""
    options = context.options
    if options.take_busy or options.force:
        return {}
    try:
        seen = inventory.take(options.backend, context.host, context.environment, context.deadline)
    except SystemRefusedError:
        return {}
    return {gpu.uuid: gpu for gpu in seen.gpus}


def _named(context: Context, records: tuple[Record, ...]) -> tuple[Record, ...]:
    """The records that the options pick; all of them where they pick none."""
    pid, gpu = context.options.pick_owner, context.options.pick_gpu
    if not context.options.picks_some:
        return records
    named = tuple([record for record in records if record.owner.pid == pid or gpu in (record.uuid, record.index)])
    if not named:
        what = f"GPU {gpu!r}" if gpu else f"owner pid {pid}"
        raise UsageError(f"{what} is not in the ledger {context.options.ledger}", "see 'status'")
    return named


def _against(context: Context, record: Record, liveness: dict[Identity, str], gpus: dict[str, Gpu]) -> str:
    """What speaks against freeing a record; empty if nothing does."""
    if context.options.force:
        return ""
    if liveness[record.owner.identity] != DEAD:
        return f"its owner {record.owner} is {liveness[record.owner.identity]}"
    use = "" if context.options.take_busy else still_used(record, gpus.get(record.uuid))
    return f"its owner {record.owner} has ended, but it is still used by {use}" if use else ""
