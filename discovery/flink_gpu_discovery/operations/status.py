"""``status``: what the ledger holds, and whether the owners and the GPUs are still there."""

from __future__ import annotations

from flink_gpu_discovery.errors import DiscoveryError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.ledger.store import Ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.models import Identity, Inventory, Record
    from flink_gpu_discovery.operations.context import Context


class Status:
    """The records, each owner's ``liveness``, the GPUs ``seen`` now (None: they can't be asked), and notes."""

    __slots__ = ("liveness", "notes", "records", "seen")

    def __init__(
        self,
        records: tuple[Record, ...],
        liveness: dict[Identity, str],
        seen: Inventory | None,
        notes: tuple[str, ...],
    ) -> None:
        self.records: Final = records
        self.liveness: Final = liveness
        self.seen: Final = seen
        self.notes: Final = notes


def status(context: Context) -> Status:
    """Read the ledger and ask for the GPUs; a driver that doesn't answer is a note, since the ledger does."""
    ledger = Ledger(context.options.ledger, context.host)
    records = ledger.read()
    notes = [*ledger.warnings()]
    liveness = {record.owner.identity: context.processes.liveness(record.owner) for record in records}
    seen = None
    if records:
        try:
            seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
            notes += seen.notes
        except DiscoveryError as error:
            notes.append(f"whether the GPUs are there is unknown: {error}")
    return Status(records, liveness, seen, tuple(notes))
