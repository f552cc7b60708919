"""Tables for people and JSON for programs: pure text, made from what the operations return."""

from __future__ import annotations

import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from flink_gpu_discovery.models import Finding, Gpu, Identity, Inventory, Record


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
    ledger: str,
    records: tuple[Record, ...],
    liveness: dict[Identity, str],
    seen: Inventory | None,
    confinements: dict[Identity, str],
    *,
    as_json: bool,
) -> str:
    """The ledger's records, each owner's liveness, and the GPUs as they are now; None if they can't be asked.

    ``confinements`` tells the state of each confined owner's; the table shows them only where there is one.
    """
    now = None if seen is None else {gpu.uuid: gpu for gpu in seen.gpus}
    if as_json:
        entries = [
            {
                **_record(record, liveness),
                "confinement": confinements.get(record.owner.identity),
                "gpu": _gpu_now(record, now),
            }
            for record in records
        ]
        return _json({"ledger": ledger, "records": entries})
    if not records:
        return f"no GPU is held ({ledger})\n"
    heads: tuple[str, ...] = ("INDEX", "UUID", "GPU", "RESOURCE", "PID", "COMMAND", "UID", "OWNER", "SINCE")
    rows = [_status_row(record, liveness, now) for record in records]
    if confinements:
        heads += ("CONFINEMENT", "CGROUP")
        rows = [(*row, _confinement(record, confinements), record.cgroup) for row, record in zip(rows, records)]
    return _table(heads, rows)


def _confinement(record: Record, confinements: dict[Identity, str]) -> str:
    state = confinements.get(record.owner.identity, "")
    return state if record.state == "held" else f"{record.state}: an interrupted call, see 'reclaim'"


def _status_row(record: Record, liveness: dict[Identity, str], now: dict[str, Gpu] | None) -> tuple[str, ...]:
    owner = record.owner
    gpu = _gpu_now(record, now)
    health = {None: "?", True: gpu["fault"] or "ok", False: "missing"}[gpu["seen"]]
    return (
        str(gpu["index"] or record.index),
        record.uuid,
        str(health),
        record.resource,
        str(owner.pid),
        owner.command,
        str(owner.uid),
        liveness[owner.identity],
        record.since,
    )


def _gpu_now(record: Record, now: dict[str, Gpu] | None) -> dict[str, Any]:
    """Whether a recorded GPU is there, None if that isn't known, under which index, and what is wrong with it."""
    gpu = (now or {}).get(record.uuid)
    seen = None if now is None else gpu is not None
    return {"seen": seen, "index": gpu.index if gpu else None, "fault": gpu.fault or None if gpu else None}


def reclaimed(ledger: str, records: tuple[Record, ...], liveness: dict[Identity, str], *, as_json: bool) -> str:
    """What ``reclaim`` gave back, and each owner's liveness then."""
    if as_json:
        return _json({"ledger": ledger, "reclaimed": [_record(record, liveness) for record in records]})
    if not records:
        return f"nothing to reclaim ({ledger})\n"
    return "".join([_reclaimed_line(record, liveness[record.owner.identity]) for record in records])


def findings(found: tuple[Finding, ...], *, as_json: bool) -> str:
    """What ``doctor`` found, a check a line."""
    if as_json:
        checks = [{"check": one.name, "state": one.state, "what": one.what, "mend": one.mend or None} for one in found]
        return _json({"checks": checks})
    return "".join(
        [f"{one.state:8}{one.name:8}{_plain(one.what)}{f'; {_plain(one.mend)}' if one.mend else ''}\n" for one in found]
    )


def _reclaimed_line(record: Record, liveness: str) -> str:
    how = "" if liveness == "dead" else f", whose owner is {liveness}"
    return f"reclaimed GPU {record.index} ({record.uuid}) of {_plain(str(record.owner))}{how}\n"


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


def _record(record: Record, liveness: dict[Identity, str]) -> dict[str, object]:
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
