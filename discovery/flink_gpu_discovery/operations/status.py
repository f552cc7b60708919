"""``status``: what the ledger holds, whether the owners and the GPUs are still there, and the confinements in force."""

from __future__ import annotations

import os

from flink_gpu_discovery.errors import DiscoveryError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.ledger.store import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.models import Identity, Inventory, Record
    from flink_gpu_discovery.operations.context import Context


class Status:
    """The records, each owner's ``liveness``, the GPUs ``seen`` now (None: they can't be asked), and notes.

    ``confinements`` says of each confined owner what the kernel answers now: ``in force``, or what is wrong.
    """

    __slots__ = ("confinements", "liveness", "notes", "records", "seen")

    def __init__(
        self,
        records: tuple[Record, ...],
        liveness: dict[Identity, str],
        seen: Inventory | None,
        confinements: dict[Identity, str],
        notes: tuple[str, ...],
    ) -> None:
        self.confinements: Final = confinements
        self.records: Final = records
        self.liveness: Final = liveness
        self.seen: Final = seen
        self.notes: Final = notes


def status(context: Context) -> Status:
    """Read the ledger and ask for the GPUs; a driver that doesn't answer is a note, since the ledger does."""
    ledger = Ledger(context.options.ledger, context.host, roots=context.options.isolate)
    ledger.check_place()
    records = ledger.read()
    notes = [*ledger.warnings(), *_elsewhere(context, records)]
    liveness = {record.owner.identity: context.processes.liveness(record.owner) for record in records}
    seen = None
    if records:
        try:
            seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
            notes += seen.notes
        except DiscoveryError as error:
            notes.append(f"whether the GPUs are there is unknown: {error}")
    return Status(records, liveness, seen, _confinements(context, records, seen), tuple(notes))


def _elsewhere(context: Context, records: tuple[Record, ...]) -> list[str]:
    """A hint where this ledger is empty and the other mode's is not."""
    path = context.options.other_ledger
    if records or not path:
        return []
    try:
        others = Ledger(path, context.host).read()
    except DiscoveryError:
        return []
    mend = "leave out --isolate" if context.options.isolate else "add --isolate"
    return [f"{path} holds {len(others)} GPUs; {mend} to see them"] if others else []


def _confinements(context: Context, records: tuple[Record, ...], seen: Inventory | None) -> dict[Identity, str]:
    """Of each owner with a cgroup, asked of the kernel rather than of the ledger; that takes root."""
    confined = {record.owner.identity: record.owner for record in records if record.cgroup}
    if not confined or not context.options.isolate:
        return {}
    if os.geteuid() != 0:
        return dict.fromkeys(confined, "unknown: ask as root")
    from flink_gpu_discovery.operations.confinements import Confinements

    confinements = Confinements(context, None if seen is None else seen.gpus)
    return {identity: confinements.state(records, owner) for identity, owner in confined.items()}
