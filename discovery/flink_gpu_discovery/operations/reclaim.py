"""``reclaim``: free the GPUs of owners that have ended, and those that an operator names."""

from __future__ import annotations

from flink_gpu_discovery.errors import NoDriverError, SystemRefusedError, UsageError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.ledger.store import Ledger
from flink_gpu_discovery.operations.leftovers import still_used
from flink_gpu_discovery.operations.sight import dead_owners

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.ledger.lock import Lock
    from flink_gpu_discovery.models import Gpu, Identity, Record
    from flink_gpu_discovery.operations.confinements import Confinements
    from flink_gpu_discovery.operations.context import Context


class Reclaimed:
    """The records that were ``freed``, each owner's ``liveness`` by its identity, and notes on dead ones ``kept``."""

    __slots__ = ("freed", "kept", "liveness")

    def __init__(self, freed: tuple[Record, ...], liveness: dict[Identity, str], kept: tuple[str, ...]) -> None:
        self.freed: Final = freed
        self.liveness: Final = liveness
        self.kept: Final = kept


class _Gpus:
    """The GPUs by UUID as they are now; why none can be asked; what is known of those that were left out.

    ``asked`` tells whether there was an answer.
    """

    __slots__ = ("asked", "by_uuid", "left_out", "unknown")

    def __init__(self, by_uuid: dict[str, Gpu], unknown: str = "", left_out: str = "", *, asked: bool = False) -> None:
        self.asked: Final = asked
        self.by_uuid: Final = by_uuid
        self.unknown: Final = unknown
        self.left_out: Final = left_out


def reclaim(context: Context) -> Reclaimed:
    """Remove the records of owners that are proven dead and whose GPUs nothing uses any more.

    With ``--owner`` or ``--gpu`` only those, all of them or none; with ``--force`` these even if their owner is
    alive or something uses them. ``UsageError`` if what is named isn't recorded or may not be freed.
    """
    ledger = Ledger(context.options.ledger, context.host, roots=context.options.isolate)
    if context.options.isolate:
        from flink_gpu_discovery.isolation.retreat import leave_cgroups

        leave_cgroups(context.host)
    if not ledger.exists():
        _named(context, (), _Gpus({}))
        _confinements(context, _Gpus({})).sweep(())
        return Reclaimed((), {}, ())
    dead = dead_owners(context)
    gpus = _look(context)
    confinements = _confinements(context, gpus)
    with ledger.lock(context.deadline) as lock:
        confinements.check_sight()
        before = confinements.recover(ledger, lock, ledger.read())
        freed, kept = _judge(context, before, dead, gpus)
        after = tuple([record for record in before if record not in freed])
        context.deadline.check("before giving back the GPUs")
        troubles = confinements.renew(before, after)
        if freed:
            ledger.replace(lock, after)
        ledger.remove_leftover()
        confinements.sweep(after)
    liveness = {record.owner.identity: context.processes.liveness(record.owner) for record in freed}
    return Reclaimed(freed, liveness, (*troubles, *kept))


def _judge(
    context: Context, records: tuple[Record, ...], dead: frozenset[Identity], gpus: _Gpus
) -> tuple[tuple[Record, ...], list[str]]:
    """The records to free, and notes on those of dead owners that are kept."""
    named = _named(context, records, gpus)
    against = {record.uuid: _against(context, record, dead, gpus) for record in named}
    kept = [record for record in named if against[record.uuid]]
    if kept and context.options.picks_some:
        reasons = [f"GPU {record.index} is kept: {against[record.uuid]}" for record in kept[:4]]
        raise UsageError("; ".join(reasons), "--force frees it all the same")
    notes = [f"GPU {record.index} is kept: {against[record.uuid]}" for record in kept if record.owner.identity in dead]
    return tuple([record for record in named if not against[record.uuid]]), notes


class _Unconfined:
    """In place of ``Confinements`` where owners are not confined."""

    def check_sight(self) -> None:
        pass

    def recover(self, ledger: Ledger, lock: Lock, records: tuple[Record, ...]) -> tuple[Record, ...]:
        return records

    def renew(self, before: tuple[Record, ...], after: tuple[Record, ...]) -> tuple[str, ...]:
        return ()

    def sweep(self, records: tuple[Record, ...]) -> None:
        pass


def _confinements(context: Context, gpus: _Gpus) -> Confinements | _Unconfined:
    if not context.options.isolate:
        return _Unconfined()
    from flink_gpu_discovery.operations.confinements import Confinements

    return Confinements(context, tuple(gpus.by_uuid.values()) if gpus.asked else None)


def _look(context: Context) -> _Gpus:
    """Ask for the GPUs and what computes on them, before the lock is taken. No driver: nothing can."""
    options = context.options
    by_index = options.pick_gpu != "" and not options.pick_gpu.startswith(("GPU-", "MIG-"))
    if (options.take_busy or options.force) and not by_index and not options.isolate:
        return _Gpus({})
    try:
        seen = inventory.take(options.backend, context.host, context.environment, context.deadline, processes=True)
    except NoDriverError:
        return _Gpus({}, "there is no driver" if by_index else "")
    except SystemRefusedError as error:
        return _Gpus({}, error.what)
    return _Gpus({gpu.uuid: gpu for gpu in seen.gpus}, left_out="; ".join(seen.notes[:2]), asked=True)


def _named(context: Context, records: tuple[Record, ...], gpus: _Gpus) -> tuple[Record, ...]:
    """The records that the options pick; all of them where they pick none."""
    if not context.options.picks_some:
        return records
    named = _of_owner(context, records) if context.options.pick_owner else _of_gpu(context, records, gpus)
    if not named:
        pid, gpu = context.options.pick_owner, context.options.pick_gpu
        what = f"GPU {gpu!r}" if gpu else f"owner pid {pid}"
        raise UsageError(f"{what} is not in the ledger {context.options.ledger}", "see 'status'")
    return named


def _of_owner(context: Context, records: tuple[Record, ...]) -> tuple[Record, ...]:
    named = tuple([record for record in records if record.owner.pid == context.options.pick_owner])
    if len({record.owner.identity for record in named}) > 1:
        uuids = ", ".join([f"{record.uuid} (PID namespace {record.owner.pid_namespace})" for record in named[:6]])
        raise UsageError(f"pid {named[0].owner.pid} is the PID of several owners: {uuids}", "name each by --gpu UUID")
    return named


def _of_gpu(context: Context, records: tuple[Record, ...], gpus: _Gpus) -> tuple[Record, ...]:
    """By UUID, or by the index that the GPU has today, as ``status`` shows it."""
    name = context.options.pick_gpu
    uuids = [uuid for uuid, gpu in gpus.by_uuid.items() if gpu.index == name] or [name]
    if gpus.unknown and uuids == [name] and not name.startswith(("GPU-", "MIG-")):
        raise UsageError(f"which GPU is {name!r} now can't be told: {gpus.unknown}", "name it by its UUID")
    return tuple([record for record in records if record.uuid in uuids])


def _against(context: Context, record: Record, dead: frozenset[Identity], gpus: _Gpus) -> str:
    """What speaks against freeing a record; empty if nothing does."""
    if context.options.force:
        return ""
    if record.owner.identity not in dead:
        return f"its owner {record.owner} is {context.processes.liveness(record.owner)}"
    if context.options.take_busy:
        return ""
    reason = gpus.unknown or (gpus.left_out if record.uuid not in gpus.by_uuid else "")
    if reason:
        return f"whether anything uses it can't be told: {reason}; --take-busy frees it all the same"
    use = still_used(record, gpus.by_uuid.get(record.uuid))
    return f"its owner {record.owner} has ended, but it is still used by {use}" if use else ""
