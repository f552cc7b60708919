"""The confinements of a host's owners, kept as the ledger says: what an owner may open is exactly what it holds."""

from __future__ import annotations

from flink_gpu_discovery.errors import DiscoveryError, SystemRefusedError, TryAgainError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.isolation import nodes, places
from flink_gpu_discovery.isolation.retreat import is_out
from flink_gpu_discovery.isolation.rules import rules_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Final

    from flink_gpu_discovery.isolation.confinement import Confinement
    from flink_gpu_discovery.isolation.rules import Rules, Survey
    from flink_gpu_discovery.ledger.lock import Lock
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.models import Gpu, Identity, Owner, Record
    from flink_gpu_discovery.operations.context import Context


class Confinements:
    """Made for one call; ``gpus`` are all of the host's, None where they can't be asked for."""

    __slots__ = ("_context", "_gpus", "_surveyed")

    def __init__(self, context: Context, gpus: tuple[Gpu, ...] | None) -> None:
        self._context: Final = context
        self._gpus: Final = gpus
        self._surveyed: Survey | None = None

    def check_sight(self) -> None:
        """``TryAgainError`` if this process was moved into a confinement, where not all GPUs can be seen."""
        if not is_out(self._context.host):
            raise TryAgainError("this call was moved into its caller's confinement by another one", "call again")

    def rules(self, records: Iterable[Record], identity: Identity, *, all_seen: bool = False) -> Rules:
        """What this owner may open when the ledger holds ``records``.

        Of a GPU that isn't seen now no node is known, so it would be denied; with ``all_seen`` that is refused.
        """
        held = [record.uuid for record in records if record.owner.identity == identity]
        seen = {gpu.uuid for gpu in self._gpus or ()}
        unseen = [uuid for uuid in held if uuid not in seen]
        if unseen and all_seen and self._gpus is not None:
            raise SystemRefusedError(
                f"{unseen[0]}, which it holds, is not seen now, so its nodes can't be told",
                "see 'flink-gpu-discovery inventory'",
            )
        if held and self._gpus is None:
            raise SystemRefusedError(
                "which nodes belong to which GPU can't be told while the GPUs can't be asked for",
                "see 'flink-gpu-discovery inventory'",
            )
        return rules_for(self._survey(), held)

    def recorded(self, records: Iterable[Record], identity: Identity) -> Confinement | None:
        """The confinement that the ledger names for this owner."""
        for record in records:
            if record.owner.identity == identity and record.cgroup:
                return places.at(self._context.host, self._context.processes, record.cgroup)
        return None

    def of(self, records: Iterable[Record], owner: Owner, rules: Rules) -> Confinement:
        """The confinement of an owner that lives: the recorded one, or the one that it is in, or one to be made."""
        recorded = self.recorded(records, owner.identity)
        if recorded is not None and recorded.exists():
            return recorded
        return places.choose(self._context.host, self._context.processes, owner, rules)

    def state(self, records: tuple[Record, ...], owner: Owner) -> str:
        """``in force`` if the kernel confines the owner as ``records`` say, else what is wrong."""
        try:
            confinement = self.recorded(records, owner.identity)
            if confinement is None or not confinement.exists():
                return "gone: the cgroup doesn't exist"
            if self._context.processes.is_dead(owner):
                return "empty" if confinement.is_empty() else "its owner has ended, others are left in it"
            rules = self.rules(records, owner.identity, all_seen=True)
            faults, _ = confinement.examine(owner, rules, self._context.deadline.remaining())
        except (DiscoveryError, OSError) as error:
            return f"unknown: {error}"
        return f"broken: {faults[0]}" if faults else "in force"

    def settle(
        self, owner: Owner, before: tuple[Record, ...], after: tuple[Record, ...], *, all_seen: bool = False
    ) -> None:
        """Let an owner open what is left to it in ``after``; its confinement stands in ``before``."""
        confinement = self.recorded(before, owner.identity)
        if confinement is not None and confinement.exists() and not confinement.is_empty():
            confinement.enforce(self.rules(after, owner.identity, all_seen=all_seen))

    def renew(self, before: tuple[Record, ...], after: tuple[Record, ...]) -> tuple[str, ...]:
        """Let every confinement of ``before`` be what ``after`` says, also against GPUs that have come meanwhile.

        Returns what is wrong with those of owners that keep GPUs; those that lose some must be narrowed.
        """
        troubles = []
        for identity, owner in {record.owner.identity: record.owner for record in before if record.cgroup}.items():
            loses = _count(after, identity) < _count(before, identity)
            try:
                self.settle(owner, before, after, all_seen=not loses)
            except DiscoveryError as error:
                if loses:
                    raise
                troubles.append(f"the confinement of {owner} can't be renewed: {error}")
        return tuple(troubles)

    def sweep(self, records: tuple[Record, ...]) -> None:
        """Remove the empty cgroups under names of ours that the ledger doesn't know and whose owner has ended.

        While it runs, a call that works on another ledger may just be moving it in.
        """
        processes, known = self._context.processes, [record.cgroup for record in records]
        for confinement in places.left_behind(self._context.host, processes, known):
            try:
                if confinement.is_empty() and not places.is_named_after_live(processes, confinement):
                    confinement.remove()
            except (DiscoveryError, OSError):
                continue  # somebody is just moving in, or it has gone

    def tidy(self, before: tuple[Record, ...], after: tuple[Record, ...]) -> None:
        """Remove the empty cgroups of owners that have records in ``before`` and none in ``after``.

        What can't be removed now is removed by a later ``reclaim``.
        """
        kept = {record.cgroup for record in after}
        for folder in {record.cgroup for record in before if record.cgroup} - kept:
            try:
                places.at(self._context.host, self._context.processes, folder).remove()
            except (DiscoveryError, OSError):
                continue

    def recover(self, ledger: Ledger, lock: Lock, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Undo what an interrupted call left half done: records that never became ``held``.

        Nobody was told of these GPUs. An owner that was being put into a new cgroup is taken out again; one that was
        in it already may open what it holds, and no more.
        """
        left = tuple([record for record in records if record.state == "held"])
        if len(left) == len(records):
            return records
        for record in [record for record in records if record.state != "held"]:
            confinement = places.at(self._context.host, self._context.processes, record.cgroup)
            if confinement.exists():
                confinement.enforce(self.rules(left, record.owner.identity))
                if record.state == "joining" and not _count(left, record.owner.identity):
                    confinement.dissolve()
        ledger.replace(lock, left)
        self.tidy(records, left)
        return left

    def _survey(self) -> Survey:
        if self._surveyed is None:
            self._surveyed = nodes.survey(self._context.host, self._gpus or ())
        return self._surveyed


def _count(records: tuple[Record, ...], identity: Identity) -> int:
    return len([record for record in records if record.owner.identity == identity])


def gpus_now(context: Context) -> tuple[Gpu, ...] | None:
    """The host's GPUs, None if no driver tells: giving GPUs back must work without one, too."""
    try:
        return inventory.take(context.options.backend, context.host, context.environment, context.deadline).gpus
    except DiscoveryError:
        return None
