"""A coordinated grant: decided, recorded and delivered under the lock, and undone if anything comes between."""

from __future__ import annotations

from flink_gpu_discovery import allocation, interrupts
from flink_gpu_discovery.errors import DiscoveryError, ToldError, UsageError
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
        self._ledger: Final = Ledger(context.options.ledger, context.host, roots=context.options.isolate)

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
                self._establish(lock, before, decision)
                interrupts.ignore_signals()
                deliver(line)
            except BaseException as error:
                self._put_back(lock, before, decision, error)
                raise
            notes = self._finish(before, decision)
        return (*warnings, *notes, *_taken_over(decision))

    def _records(self, lock: Lock) -> tuple[Record, ...]:
        if not self._context.options.migrate_upstream:
            return self._ledger.read()
        from flink_gpu_discovery.operations.migrate import read_either

        return read_either(self._ledger, lock, self._sight.inventory.gpus, self._context.processes, utc_now())

    def _decide(self, records: tuple[Record, ...], amount: int) -> Decision:
        options, dead = self._context.options, self._sight.dead
        decision = allocation.decide(
            gpus=self._sight.visible,
            records=records,
            owner=self._owner,
            resource=options.resource,
            amount=amount,
            now=utc_now(),
            is_dead=(lambda owner: owner.identity in dead) if options.check_dead else None,
            still_used=_nothing if options.take_busy else still_used,
            keep_ordinals=options.id_kind == "ordinal",
        )
        allocation.check_limits(
            decision, self._owner, options.max_per_owner, options.max_per_uid, self._context.processes.is_dead
        )
        return decision

    def _line(self, decision: Decision) -> str:
        kind = self._context.options.id_kind
        if kind != "ordinal":
            return answers.line(decision.gpus, kind)
        uuids = [gpu.uuid for gpu in decision.gpus]
        return answers.join(allocation.ordinals(decision.records, self._owner, uuids), kind)

    def _establish(self, lock: Lock, before: tuple[Record, ...], decision: Decision) -> None:
        """Make the decision true: write it, unless it is a repeated one."""
        if decision.granted:
            self._check_caller()
            self._write(lock, decision.records)

    def _finish(self, before: tuple[Record, ...], decision: Decision) -> tuple[str, ...]:
        """What is left to do once the line is delivered; returns notes for people."""
        return ()

    def _check_caller(self) -> None:
        self._context.caller.check()

    def _write(self, lock: Lock, records: tuple[Record, ...]) -> None:
        """Write the ledger, unless the time is over or the host works with the other mode's."""
        self._context.deadline.check("before recording the GPUs")
        self._ledger.replace(lock, records)
        self._context.deadline.check("after recording the GPUs")
        self._check_other_mode()

    def _check_other_mode(self) -> None:
        """Coordination and isolation keep a ledger each: while both have live owners, a GPU could be handed out twice.

        Each looks at the other's after it has written its own, so that two calls at once can't miss each other.
        """
        path = self._context.options.other_ledger
        other = Ledger(path, self._context.host) if path else None
        if other is None or not other.exists():
            return
        for record in other.read():
            if not self._context.processes.is_dead(record.owner):
                isolated = self._context.options.isolate
                raise UsageError(
                    f"{record.owner} holds GPU {record.index} {'without' if isolated else 'with'} isolation, by {path}",
                    "let all task executors of a host use --isolate or none; stop those of the other kind first",
                )

    def _put_back(self, lock: Lock, before: tuple[Record, ...], decision: Decision, cause: BaseException) -> None:
        """Let the ledger say again what it said before, if it says anything else."""
        interrupts.ignore_signals()
        if not decision.granted:
            return
        try:
            if not self._ledger.holds(before):
                self._ledger.replace(lock, before)
        except DiscoveryError as error:
            if isinstance(cause, ToldError):
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
