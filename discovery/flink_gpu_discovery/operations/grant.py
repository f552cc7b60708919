"""A coordinated grant: decided and recorded under the lock, delivered, and taken back if anything comes between."""

from __future__ import annotations

import os

from flink_gpu_discovery import allocation, interrupts
from flink_gpu_discovery.errors import DiscoveryError, UsageError
from flink_gpu_discovery.host import Deadline, utc_now
from flink_gpu_discovery.ledger.store import Ledger
from flink_gpu_discovery.operations import answers
from flink_gpu_discovery.operations.leftovers import still_used

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from flink_gpu_discovery.allocation import Decision
    from flink_gpu_discovery.ledger.lock import Lock
    from flink_gpu_discovery.models import Gpu, Owner, Record
    from flink_gpu_discovery.operations.context import Context

# For taking back what can't be delivered, also after the deadline; Flink's own limit is 2 s behind it.
_UNDO_SECONDS = 1.0


class Grant:
    """GPUs for one owner. ``granted`` and ``taken_over`` are the records that it adds and replaces."""

    __slots__ = ("_context", "_granted", "_ledger", "_owner", "_taken_over")

    def __init__(self, context: Context, owner: Owner) -> None:
        self._context: Final = context
        self._owner: Final = owner
        self._ledger: Final = Ledger(context.options.ledger, context.host)
        self._granted: tuple[Record, ...] = ()
        self._taken_over: tuple[Record, ...] = ()

    def make(
        self, host_gpus: tuple[Gpu, ...], visible: tuple[Gpu, ...], amount: int, deliver: Callable[[str], None]
    ) -> tuple[str, ...]:
        """Decide, record, deliver; whatever interrupts that, the ledger is as before. Returns notes for people."""
        warnings = () if self._ledger.exists() else self._ledger.warnings()
        try:
            with self._ledger.lock(self._context.deadline) as lock:
                line = self._record(lock, host_gpus, visible, amount)
            self._context.deadline.check("after recording the GPUs")
            interrupts.ignore_signals()
            deliver(line)
        except BaseException as error:
            self._take_back(error)
            raise
        return (*warnings, *self._notes())

    def _notes(self) -> list[str]:
        """Whose GPUs were taken over, an owner a line."""
        indexes: dict[str, list[str]] = {}
        for record in self._taken_over:
            indexes.setdefault(str(record.owner), []).append(record.index)
        return [f"GPU {','.join(gpus)} was taken over from {owner}, which has ended" for owner, gpus in indexes.items()]

    def _record(self, lock: Lock, host_gpus: tuple[Gpu, ...], visible: tuple[Gpu, ...], amount: int) -> str:
        """Decide and record; returns the answer. The GPUs were asked for before, since a driver may hang."""
        before = self._records(lock, host_gpus)
        decision = self._decide(before, visible, amount)
        line = self._line(decision)
        if decision.granted:
            self._check_caller()
            self._context.deadline.check("before recording the GPUs")
            self._granted, self._taken_over = decision.granted, decision.taken_over
            self._ledger.replace(lock, decision.records)
        return line

    def _records(self, lock: Lock, host_gpus: tuple[Gpu, ...]) -> tuple[Record, ...]:
        if not self._context.options.migrate_upstream:
            return self._ledger.read()
        from flink_gpu_discovery.operations.migrate import read_either

        return read_either(self._ledger, lock, host_gpus, self._context.processes, utc_now())

    def _decide(self, records: tuple[Record, ...], visible: tuple[Gpu, ...], amount: int) -> Decision:
        options = self._context.options
        return allocation.decide(
            gpus=visible,
            records=records,
            owner=self._owner,
            resource=options.resource,
            amount=amount,
            now=utc_now(),
            is_dead=self._context.processes.is_dead if options.check_dead else None,
            still_used=_nothing if options.take_busy else still_used,
        )

    def _line(self, decision: Decision) -> str:
        kind = self._context.options.id_kind
        if kind != "ordinal":
            return answers.line(decision.gpus, kind)
        uuids = [gpu.uuid for gpu in decision.gpus]
        return answers.join(allocation.ordinals(decision.records, self._owner, uuids), kind)

    def _check_caller(self) -> None:
        """The parent that was taken for the owner must still be there: an orphan's parent is somebody else."""
        if not self._context.options.owner_pid and os.getppid() != self._owner.pid:
            raise UsageError(f"the caller, {self._owner}, has ended meanwhile", "nothing was recorded")

    def _take_back(self, cause: BaseException) -> None:
        """Undo what this call recorded, if anything, and nothing that others recorded meanwhile."""
        if not self._granted:
            return
        interrupts.ignore_signals()
        own = {(record.uuid, record.owner.identity) for record in self._granted}
        try:
            with self._ledger.lock(Deadline.from_now(_UNDO_SECONDS)) as lock:
                now = self._ledger.read()
                kept = tuple([record for record in now if (record.uuid, record.owner.identity) not in own])
                if len(kept) < len(now):
                    taken = {record.uuid for record in kept}
                    lost = tuple([record for record in self._taken_over if record.uuid not in taken])
                    self._ledger.replace(lock, kept + lost)
        except DiscoveryError as error:
            if isinstance(cause, DiscoveryError):
                what = f"{cause.what}; the GPUs may stay recorded, since {error.what}"
                raise type(cause)(what, "call again to get them") from cause


def _nothing(record: Record, gpu: Gpu) -> str:
    """``--take-busy``: nobody looks."""
    return ""
