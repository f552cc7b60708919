"""Tables for people and JSON for programs: pure text, made from what the operations return."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from flink_gpu_discovery.models import Gpu, Inventory, Record


def inventory(seen: Inventory, visible: set[str], hidden: tuple[str, ...], *, as_json: bool) -> str:
    """The GPUs that a backend saw; ``visible`` are the UUIDs that the environment shows."""
    if as_json:
        return _json(
            {
                "backend": seen.backend,
                "gpus": [_gpu(gpu, visible) for gpu in seen.gpus],
                "notes": [*seen.notes, *hidden],
            }
        )
    rows = [
        (gpu.index, gpu.uuid, gpu.pci_address, gpu.name, gpu.node, gpu.fault or "ok", _yes(gpu.uuid in visible))
        for gpu in seen.gpus
    ]
    heads = ("INDEX", "UUID", "PCI ADDRESS", "NAME", "NODE", "HEALTH", "VISIBLE")
    return _table(heads, rows) if rows else f"no GPU seen by {seen.backend}\n"


def status(
    ledger: str, records: tuple[Record, ...], liveness: dict[tuple[int, int, str, int], str], *, as_json: bool
) -> str:
    """The ledger's records; ``liveness`` is each owner's, by its identity."""
    if as_json:
        return _json({"ledger": ledger, "records": [_record(record, liveness) for record in records]})
    if not records:
        return f"no GPU is held ({ledger})\n"
    return _table(
        ("INDEX", "UUID", "RESOURCE", "PID", "COMMAND", "UID", "OWNER", "SINCE"),
        [
            (
                record.index,
                record.uuid,
                record.resource,
                str(record.owner.pid),
                record.owner.command,
                str(record.owner.uid),
                liveness[record.owner.identity],
                record.since,
            )
            for record in records
        ],
    )


def reclaimed(ledger: str, records: tuple[Record, ...], *, as_json: bool) -> str:
    """What ``reclaim`` gave back."""
    if as_json:
        dead = {record.owner.identity: "dead" for record in records}
        return _json({"ledger": ledger, "reclaimed": [_record(record, dead) for record in records]})
    if not records:
        return f"nothing to reclaim ({ledger})\n"
    return "".join(
        [f"reclaimed GPU {record.index} ({record.uuid}) of {_plain(str(record.owner))}\n" for record in records]
    )


def _gpu(gpu: Gpu, visible: set[str]) -> dict[str, object]:
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "pci_address": gpu.pci_address,
        "name": gpu.name,
        "vendor": gpu.vendor,
        "node": gpu.node or None,
        "fault": gpu.fault or None,
        "visible": gpu.uuid in visible,
    }


def _record(record: Record, liveness: dict[tuple[int, int, str, int], str]) -> dict[str, object]:
    owner = record.owner
    return {
        "uuid": record.uuid,
        "index": record.index,
        "pci_address": record.pci_address,
        "resource": record.resource,
        "owner": {
            "pid": owner.pid,
            "start_time": owner.start_time,
            "boot_id": owner.boot_id,
            "pid_namespace": owner.pid_namespace,
            "uid": owner.uid,
            "command": owner.command,
            "liveness": liveness[owner.identity],
        },
        "since": record.since,
        "state": record.state,
        "cgroup": record.cgroup or None,
    }


def _json(value: dict[str, object]) -> str:
    return json.dumps(value, indent=2) + "\n"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    cells = [heads, *[tuple([_plain(cell) or "-" for cell in row]) for row in rows]]
    widths = [max([len(row[column]) for row in cells]) for column in range(len(heads))]
    lines = ["  ".join([cell.ljust(width) for cell, width in zip(row, widths)]).rstrip() for row in cells]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """A process may call itself anything; no control characters reach the terminal."""
    return "".join([character if character.isprintable() else "?" for character in text])


def _yes(value: bool) -> str:
    return "yes" if value else "no"
