"""``allocate``: FLIP-108's first function, with or without the ledger."""

from __future__ import annotations

import os
import time

from flink_gpu_discovery import allocation
from flink_gpu_discovery.errors import SystemRefusedError, TooFewGpusError, UsageError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.models import Inventory
from flink_gpu_discovery.operations.leftovers import still_used
from flink_gpu_discovery.visibility import narrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from flink_gpu_discovery.allocation import Decision
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.models import Gpu, Owner, Record
    from flink_gpu_discovery.operations.context import Context

_PAUSE_SECONDS = 0.05
# --wait ends this long before the deadline, so that the refusal still names who holds what.
_RESERVE_SECONDS = 0.1
# Flink reads its pipes only after the script has ended.
_LARGEST_ANSWER_BYTES = 4096


class Grant:
    """The answer to Flink, what to say beside it, and how to take it back if it can't be delivered."""

    __slots__ = ("ids", "notes", "undo")

    def __init__(
        self, ids: tuple[str, ...], notes: tuple[str, ...] = (), undo: Callable[[], None] | None = None
    ) -> None:
        self.ids: Final = ids
        self.notes: Final = notes
        self.undo: Final = undo


def allocate(context: Context, amount: int) -> Grant:
    """Exactly ``amount`` GPUs, or an error and nothing changed."""
    if amount == 0:
        return Grant(())
    if context.options.isolate:
        raise SystemRefusedError("this release can't confine a task executor yet", "leave out --isolate")
    wait_until = time.monotonic() + context.options.wait_seconds
    owner = _owner(context) if context.options.coordinate else None
    seen, hidden = _visible(context)
    while True:
        try:
            return _grant(context, seen, owner, amount)
        except TooFewGpusError as error:
            left = min(wait_until - time.monotonic(), context.deadline.remaining() - _RESERVE_SECONDS)
            if left <= 0:
                reasons = "; ".join([error.what, *hidden, *seen.notes])
                raise TooFewGpusError(reasons, error.mend) from error
        time.sleep(min(_PAUSE_SECONDS, left))
        if len([gpu for gpu in seen.gpus if not gpu.fault]) < amount:
            seen, hidden = _visible(context)


def _owner(context: Context) -> Owner:
    """The task executor: Flink runs this program directly, so it is the parent."""
    return context.processes.owner(context.options.owner_pid or os.getppid())


def _visible(context: Context) -> tuple[Inventory, tuple[str, ...]]:
    """The host's GPUs that the caller may see, and why it sees no more."""
    seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
    gpus, hidden = narrow(seen.gpus, context.environment)
    return Inventory(seen.backend, gpus, seen.notes), hidden


def _grant(context: Context, seen: Inventory, owner: Owner | None, amount: int) -> Grant:
    if owner is None:
        return Grant(_ids(context, allocation.first_healthy(seen.gpus, amount)), seen.notes)
    from flink_gpu_discovery.ledger.store import Ledger

    ledger = Ledger(context.options.ledger, context.host)
    warnings = () if ledger.exists() else ledger.warnings()
    ids, decision = _record(context, ledger, seen.gpus, owner, amount)
    taken = [
        f"GPU {record.index} was taken over from {record.owner}, which has ended" for record in decision.taken_over
    ]
    undo = (lambda: _take_back(context, ledger, decision.granted)) if decision.granted else None
    return Grant(ids, (*warnings, *seen.notes, *taken), undo)


def _record(
    context: Context, ledger: Ledger, gpus: tuple[Gpu, ...], owner: Owner, amount: int
) -> tuple[tuple[str, ...], Decision]:
    """Decide and record under the lock; the GPUs were asked for before, since a driver may hang."""
    options = context.options
    with ledger.lock(context.deadline):
        before = _records(context, ledger, gpus)
        decision = allocation.decide(
            gpus=gpus,
            records=before,
            owner=owner,
            resource=options.resource,
            amount=amount,
            now=_utc_now(),
            is_dead=context.processes.is_dead if options.check_dead else None,
            still_used=_nothing if options.take_busy else still_used,
        )
        if options.id_kind == "ordinal":
            ids = allocation.ordinals(decision.records, owner, [gpu.uuid for gpu in decision.gpus])
        else:
            ids = _ids(context, decision.gpus)
        if decision.granted:
            _check_caller(context, owner)
            context.deadline.check("before recording the GPUs")
            ledger.replace(before, decision.records)
    return ids, decision


def _records(context: Context, ledger: Ledger, gpus: tuple[Gpu, ...]) -> tuple[Record, ...]:
    if not context.options.migrate_upstream:
        return ledger.read()
    from flink_gpu_discovery.operations.migrate import read_either

    return read_either(ledger, gpus, context.processes, _utc_now())


def _check_caller(context: Context, owner: Owner) -> None:
    """The parent that was taken for the owner must still be there: an orphan's parent is somebody else."""
    if not context.options.owner_pid and os.getppid() != owner.pid:
        raise UsageError(f"the caller, {owner}, has ended meanwhile", "nothing was recorded")


def _ids(context: Context, gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    kind = context.options.id_kind
    if kind == "ordinal":
        raise UsageError("--id ordinal needs the ledger", "add --coordinate, or use --id index")
    ids = tuple([gpu.uuid if kind == "uuid" else gpu.index for gpu in gpus])
    size = len(",".join(ids)) + 1
    if size > _LARGEST_ANSWER_BYTES:
        raise UsageError(f"the answer would take {size} bytes, {_LARGEST_ANSWER_BYTES} at most", "use --id index")
    return ids


def _take_back(context: Context, ledger: Ledger, granted: tuple[Record, ...]) -> None:
    """Undo what this call recorded, and nothing that others recorded meanwhile."""
    own = {(record.uuid, record.owner.identity) for record in granted}
    with ledger.lock(context.deadline):
        now = ledger.read()
        ledger.replace(now, tuple([record for record in now if (record.uuid, record.owner.identity) not in own]))


def _nothing(record: Record, gpu: Gpu) -> str:
    """``--take-busy``: nobody looks."""
    return ""


def _utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
