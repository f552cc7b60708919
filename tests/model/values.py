"""The values that the model speaks of, and the exit codes; on purpose not those of the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

DONE, USAGE, TOO_FEW = 0, 64, 69
ALIVE, DEAD, UNPROVABLE = "alive", "dead", "unprovable"


@dataclass(frozen=True)
class Owner:
    """A process instance: ``start_time`` in clock ticks since boot, ``pid`` as ``pid_namespace`` counts."""

    pid: int
    start_time: int
    boot_id: str
    pid_namespace: int
    uid: int
    command: str


@dataclass(frozen=True)
class Held:
    """A GPU in the ledger, with the index it had when it was granted."""

    uuid: str
    index: int
    pci_address: str
    resource: str
    owner: Owner


Records = Mapping[str, Held]  # by UUID


def in_file_order(records: Records) -> list[Held]:
    """As the ledger lists them: ascending by the index at the time of the grant, then by UUID."""
    return sorted(records.values(), key=lambda held: (held.index, held.uuid))
