"""A coordinated grant: decided, recorded and delivered under the lock, and undone if anything comes between."""

from __future__ import annotations

import os

from flink_gpu_discovery import allocation, interrupts
from flink_gpu_discovery.errors import DiscoveryError, UsageError
from flink_gpu_discovery.host import utc_now
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
    from flink_gpu_discovery.operations.sight import Sight


class Grant:
    """GPUs for one owner, out of those that were seen."""

    __slots__ = ("_context", "_ledger", "_owner", "_sight")

    def __init__(self, context: Context, owner: Owner, sight: Sight) -> None:
        self._context: Final = context
        self._owner: Final = owner
        self._sight: Final = sight
        self._ledger: Final = Ledger(context.options.ledger, context.host)

    def make(self, amount: int, deliver: Callable[[str], None]) -> tuple[str, ...]:
        """Decide, record, deliver; whatever interrupts that, the ledger is as before. Returns notes for people.

        The lock is held until the line is delivered, so that no retry is answered from a record that this call
        takes back.
        """
        warnings = () if self._ledger.exists() else self._ledger.warnings()
        with self._ledger.lock(self._context.deadline) as lock:
            before = self._records(lock)
            decision = self._decide(before, amount)
            line = self._line(decision)
            try:
                if decision.granted:
                    self._record(lock, decision)
                interrupts.ignore_signals()
                deliver(line)
            except BaseException as error:
                if decision.granted:
                    self._put_back(lock, before, error)
                raise
        return (*warnings, *_taken_over(decision))

    def _records(self, lock: Lock) -> tuple[Record, ...]:
        if not self._context.options.migrate_upstream:
            return self._ledger.read()
        from flink_gpu_discovery.operations.migrate import read_either

        return read_either(self._ledger, lock, self._sight.inventory.gpus, self._context.processes, utc_now())

    def _decide(self, records: tuple[Record, ...], amount: int) -> Decision:
        options, dead = self._context.options, self._sight.dead
        return allocation.decide(
            gpus=self._sight.visible,
            records=records,
            owner=self._owner,
            resource=options.resource,
            amount=amount,
            now=utc_now(),
            is_dead=(lambda owner: owner.identity in dead) if options.check_dead else None,
            still_used=_nothing if options.take_busy else still_used,
        )

    def _line(self, decision: Decision) -> str:
        kind = self._context.options.id_kind
        if kind != "ordinal":
            return answers.line(decision.gpus, kind)
        uuids = [gpu.uuid for gpu in decision.gpus]
        return answers.join(allocation.ordinals(decision.records, self._owner, uuids), kind)

    def _record(self, lock: Lock, decision: Decision) -> None:
        """Write the decision, unless the caller has gone or the time is over."""
        if not self._context.options.owner_pid and os.getppid() != self._owner.pid:
            # An orphan's parent is somebody else.
            raise UsageError(f"the caller, {self._owner}, has ended meanwhile", "nothing was recorded")
        self._context.deadline.check("before recording the GPUs")
        self._ledger.replace(lock, decision.records)
        self._context.deadline.check("after recording the GPUs")

    def _put_back(self, lock: Lock, before: tuple[Record, ...], cause: BaseException) -> None:
        """Let the ledger say again what it said before, if it says anything else."""
        interrupts.ignore_signals()
        try:
            if not self._ledger.holds(before):
                self._ledger.replace(lock, before)
        except DiscoveryError as error:
            if isinstance(cause, DiscoveryError):
                what = f"{cause.what}; the GPUs may stay recorded, since {error.what}"
                raise type(cause)(what, "call again to get them") from cause


def _taken_over(decision: Decision) -> list[str]:
    """Whose GPUs were taken over, an owner a line, under their present indexes."""
    now = {gpu.uuid: gpu.index for gpu in decision.gpus}
    indexes: dict[str, list[str]] = {}
    for record in decision.taken_over:
        indexes.setdefault(str(record.owner), []).append(now[record.uuid])
    return [f"GPU {','.join(gpus)} was taken over from {owner}, which has ended" for owner, gpus in indexes.items()]


def _nothing(record: Record, gpu: Gpu) -> str:
    """``--take-busy``: nobody looks."""
    return ""
