"""A grant whose owner is confined to its GPUs: recorded as pending, confined, proven, and only then held."""

from __future__ import annotations

import os

from flink_gpu_discovery import interrupts
from flink_gpu_discovery.errors import DiscoveryError, LookAgainError, SystemRefusedError, ToldError
from flink_gpu_discovery.isolation import places
from flink_gpu_discovery.isolation.retreat import is_out
from flink_gpu_discovery.operations.confinements import Confinements
from flink_gpu_discovery.operations.grant import Grant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.allocation import Decision
    from flink_gpu_discovery.isolation.confinement import Confinement
    from flink_gpu_discovery.ledger.lock import Lock
    from flink_gpu_discovery.models import Owner, Record
    from flink_gpu_discovery.operations.context import Context
    from flink_gpu_discovery.operations.sight import Sight


class ConfinedGrant(Grant):
    """GPUs for one owner, which can open these and no other once they are delivered."""

    __slots__ = ("_confinement", "_confinements", "_notes")

    def __init__(self, context: Context, owner: Owner, sight: Sight) -> None:
        super().__init__(context, places.acting_owner(context.host, context.processes, owner), sight)
        self._confinements: Final = Confinements(context, sight.inventory.gpus)
        self._confinement: Confinement | None = None
        self._notes: tuple[str, ...] = ()

    def _records(self, lock: Lock) -> tuple[Record, ...]:
        if not is_out(self._context.host):  # another call of this owner took this one for a part of it
            raise LookAgainError
        return self._confinements.recover(self._ledger, lock, super()._records(lock))

    def _establish(self, lock: Lock, before: tuple[Record, ...], decision: Decision) -> None:
        self._check_caller()
        after = decision.records
        rules = self._confinements.rules(after, self._owner.identity, all_seen=True)
        confinement = self._confinements.of(before, self._owner, rules)
        state = "joining" if confinement.is_empty() else "pending"
        changed = bool(decision.granted) or self._has_moved(before, confinement)
        for owner in _losers(decision):  # while the ledger still names their confinements
            self._confinements.settle(owner, before, after)
        if changed:
            self._write(lock, self._with_cgroup(decision, confinement, state))
        self._confinement = confinement
        confinement.make()
        confinement.enforce(rules)
        spared = frozenset([os.getpid(), *self._context.caller.chain])
        confinement.admit(self._owner, spared, self._context.deadline)
        self._notes = confinement.prove(self._owner, rules, self._context.deadline.remaining())
        if changed:
            self._write(lock, self._with_cgroup(decision, confinement, "held"))
        self._check_caller()

    def _has_moved(self, records: tuple[Record, ...], confinement: Confinement) -> bool:
        """Whether the owner's recorded cgroup has vanished, so that it gets another one."""
        own = [record for record in records if record.owner.identity == self._owner.identity]
        return any([record.cgroup != confinement.folder for record in own])

    def _check_caller(self) -> None:
        self._context.check_caller(self._owner)

    def _with_cgroup(self, decision: Decision, confinement: Confinement, state: str) -> tuple[Record, ...]:
        """The records afterwards. An owner has one cgroup, also if its earlier one has vanished."""
        granted = {record.uuid for record in decision.granted}
        return tuple(
            [
                record.confined(confinement.folder, state if record.uuid in granted else record.state)
                if record.owner.identity == self._owner.identity
                else record
                for record in decision.records
            ]
        )

    def _finish(self, before: tuple[Record, ...], decision: Decision) -> tuple[str, ...]:
        self._confinements.tidy(before, decision.records)
        return self._notes

    def _put_back(self, lock: Lock, before: tuple[Record, ...], decision: Decision, cause: BaseException) -> None:
        """First nobody may open anything by this call any more; then the ledger says so."""
        interrupts.ignore_signals()
        interrupts.lift_limit()
        try:
            self._release(before, decision)
        except DiscoveryError as error:
            if isinstance(cause, ToldError):
                what = f"{cause.what}; undoing it failed: {error.what}"
                raise SystemRefusedError(what, "'reclaim' tries again") from cause
            raise
        super()._put_back(lock, before, decision, cause)

    def _release(self, before: tuple[Record, ...], decision: Decision) -> None:
        confinement = self._confinement
        if confinement is not None and decision.granted and not confinement.withdraw() and confinement.exists():
            confinement.enforce(self._confinements.rules(before, self._owner.identity))
        for owner in _losers(decision):
            self._confinements.settle(owner, before, before)


def _losers(decision: Decision) -> list[Owner]:
    """The dead owners whose GPUs were taken over, each once."""
    return list({record.owner.identity: record.owner for record in decision.taken_over}.values())
