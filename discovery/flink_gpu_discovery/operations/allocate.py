"""``allocate``: FLIP-108's first function, with or without the ledger."""

from __future__ import annotations

import os
import time

from flink_gpu_discovery import allocation, interrupts
from flink_gpu_discovery.errors import DiscoveryError, SystemRefusedError, TooFewGpusError, UsageError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.host import Deadline
from flink_gpu_discovery.operations.leftovers import still_used
from flink_gpu_discovery.visibility import narrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from flink_gpu_discovery.allocation import Decision
    from flink_gpu_discovery.ledger.lock import Lock
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.models import Gpu, Inventory, Owner, Record
    from flink_gpu_discovery.operations.context import Context

_PAUSE_SECONDS = 0.05
# --wait ends this long before the deadline, so that the refusal still names who holds what.
_RESERVE_SECONDS = 0.1
# For taking back what can't be delivered, also after the deadline; Flink's own limit is 2 s behind it.
_UNDO_SECONDS = 1.0
# Flink reads its pipes only after the script has ended.
_LARGEST_ANSWER_BYTES = 4096


class _Sight:
    """The GPUs of the host, those among them that the caller may see, and why it sees no more."""

    __slots__ = ("hidden", "inventory", "visible")

    def __init__(self, seen: Inventory, visible: tuple[Gpu, ...], hidden: tuple[str, ...]) -> None:
        self.inventory: Final = seen
        self.visible: Final = visible
        self.hidden: Final = hidden


def allocate(context: Context, amount: int, deliver: Callable[[str], None]) -> tuple[str, ...]:
    """Give exactly ``amount`` GPUs, or raise an error with nothing changed; returns notes for people.

    ``deliver`` takes the one line for Flink; if it fails, what was recorded is taken back.
    """
    if amount == 0:
        return ()
    if context.options.isolate:
        raise SystemRefusedError(
            "this release can't confine a task executor yet", "leave out --isolate, also in the settings file"
        )
    wait_until = time.monotonic() + context.options.wait_seconds
    owner = _owner(context) if context.options.coordinate else None
    sight = _look(context)
    while True:
        try:
            if owner is None:
                return _first_healthy(context, sight, amount, deliver)
            return _coordinated(context, sight, owner, amount, deliver)
        except TooFewGpusError as error:
            left = min(wait_until - time.monotonic(), context.deadline.remaining() - _RESERVE_SECONDS)
            if left <= 0:
                reasons = "; ".join([error.what, *sight.hidden, *sight.inventory.notes])
                raise TooFewGpusError(reasons, error.mend) from error
        time.sleep(min(_PAUSE_SECONDS, left))
        if len([gpu for gpu in sight.visible if not gpu.fault]) < amount:
            sight = _look(context)


def _owner(context: Context) -> Owner:
    """The task executor: Flink runs this program directly, so it is the parent."""
    return context.processes.owner(context.options.owner_pid or os.getppid())


def _look(context: Context) -> _Sight:
    seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
    return _Sight(seen, *narrow(seen.gpus, context.environment))


def _first_healthy(context: Context, sight: _Sight, amount: int, deliver: Callable[[str], None]) -> tuple[str, ...]:
    gpus = allocation.first_healthy(sight.visible, amount)
    deliver(_line(context, _names(context, gpus)))
    return sight.inventory.notes


def _coordinated(
    context: Context, sight: _Sight, owner: Owner, amount: int, deliver: Callable[[str], None]
) -> tuple[str, ...]:
    """Decide, record, deliver; whatever interrupts that, the ledger is as before."""
    from flink_gpu_discovery.ledger.store import Ledger

    ledger = Ledger(context.options.ledger, context.host)
    warnings = () if ledger.exists() else ledger.warnings()
    decisions: list[Decision] = []
    try:
        with ledger.lock(context.deadline) as lock:
            line = _record(context, ledger, lock, sight, owner, amount, decisions)
        context.deadline.check("after recording the GPUs")
        interrupts.ignore_signals()
        deliver(line)
    except BaseException as error:
        if decisions and decisions[0].granted:
            _take_back(ledger, decisions[0], error)
        raise
    taken = [
        f"GPU {record.index} was taken over from {record.owner}, which has ended" for record in decisions[0].taken_over
    ]
    return (*warnings, *sight.inventory.notes, *taken)


def _record(
    context: Context,
    ledger: Ledger,
    lock: Lock,
    sight: _Sight,
    owner: Owner,
    amount: int,
    decisions: list[Decision],
) -> str:
    """Decide and record; the decision is noted in ``decisions`` before anything changes. Returns the answer.

    The GPUs were asked for before the lock was taken, since a driver may hang.
    """
    options = context.options
    before = _records(context, ledger, lock, sight)
    decision = allocation.decide(
        gpus=sight.visible,
        records=before,
        owner=owner,
        resource=options.resource,
        amount=amount,
        now=_utc_now(),
        is_dead=context.processes.is_dead if options.check_dead else None,
        still_used=_nothing if options.take_busy else still_used,
    )
    if options.id_kind == "ordinal":
        line = _line(context, allocation.ordinals(decision.records, owner, [gpu.uuid for gpu in decision.gpus]))
    else:
        line = _line(context, _names(context, decision.gpus))
    if decision.granted:
        _check_caller(context, owner)
        context.deadline.check("before recording the GPUs")
        decisions.append(decision)
        ledger.replace(lock, before, decision.records)
    else:
        decisions.append(decision)
    return line


def _records(context: Context, ledger: Ledger, lock: Lock, sight: _Sight) -> tuple[Record, ...]:
    if not context.options.migrate_upstream:
        return ledger.read()
    from flink_gpu_discovery.operations.migrate import read_either

    return read_either(ledger, lock, sight.inventory.gpus, context.processes, _utc_now())


def _check_caller(context: Context, owner: Owner) -> None:
    """The parent that was taken for the owner must still be there: an orphan's parent is somebody else."""
    if not context.options.owner_pid and os.getppid() != owner.pid:
        raise UsageError(f"the caller, {owner}, has ended meanwhile", "nothing was recorded")


def _names(context: Context, gpus: tuple[Gpu, ...]) -> tuple[str, ...]:
    return tuple([gpu.uuid if context.options.id_kind == "uuid" else gpu.index for gpu in gpus])


def _line(context: Context, ids: tuple[str, ...]) -> str:
    line = ",".join(ids) + "\n"
    if len(line) > _LARGEST_ANSWER_BYTES:
        mend = "use --id index" if context.options.id_kind == "uuid" else "ask for fewer"
        raise UsageError(f"the answer would take {len(line)} bytes, {_LARGEST_ANSWER_BYTES} at most", mend)
    return line


def _take_back(ledger: Ledger, decision: Decision, cause: BaseException) -> None:
    """Undo what this call recorded, and nothing that others recorded meanwhile."""
    interrupts.ignore_signals()
    own = {(record.uuid, record.owner.identity) for record in decision.granted}
    try:
        with ledger.lock(Deadline.from_now(_UNDO_SECONDS)) as lock:
            now = ledger.read()
            kept = tuple([record for record in now if (record.uuid, record.owner.identity) not in own])
            if len(kept) < len(now):
                taken = {record.uuid for record in kept}
                lost = tuple([record for record in decision.taken_over if record.uuid not in taken])
                ledger.replace(lock, now, kept + lost)
    except DiscoveryError as error:
        if isinstance(cause, DiscoveryError):
            raise type(cause)(
                f"{cause.what}; the GPUs may stay recorded, since {error.what}", "call again to get them"
            ) from cause


def _nothing(record: Record, gpu: Gpu) -> str:
    """``--take-busy``: nobody looks."""
    return ""


def _utc_now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
