"""The ledger's file: read by a few lines that share nothing with the package, written through the package."""

from __future__ import annotations

from pathlib import Path

from flink_gpu_discovery import models
from flink_gpu_discovery.ledger import fileformat
from tests.model.values import Held, Owner, Records


def read(path: Path) -> Records:
    """Its records by UUID; asserts that no GPU stands there twice, and that none is half-way confined."""
    if not path.exists():
        return {}
    header, *lines, end = path.read_text(encoding="ascii").splitlines()
    names = header.split("\t")[1:]
    rows = [dict(zip(names, line.split("\t"), strict=True)) for line in lines]
    assert end == f"#end {len(rows)}"
    assert all((row["state"], row["cgroup"]) == ("held", "-") for row in rows)
    records = {row["uuid"]: _held(row) for row in rows}
    assert len(records) == len(rows), f"a GPU is recorded twice in {path.read_text()}"
    return records


def _held(row: dict[str, str]) -> Held:
    owner = Owner(
        int(row["pid"]),
        int(row["start_time"]),
        row["boot_id"],
        int(row["pid_namespace"]),
        int(row["uid"]),
        row["command"],
    )
    return Held(row["uuid"], int(row["index"]), row["pci_address"], row["resource"], owner)


def write(path: Path, records: Records) -> None:
    """A ledger as an earlier call would have left it."""
    path.parent.mkdir(mode=0o770)
    path.write_bytes(fileformat.render(tuple(_record(held) for held in records.values())))


def _record(held: Held) -> models.Record:
    owner = models.Owner(
        pid=held.owner.pid,
        start_time=held.owner.start_time,
        boot_id=held.owner.boot_id,
        pid_namespace=held.owner.pid_namespace,
        uid=held.owner.uid,
        command=held.owner.command,
    )
    return models.Record(
        uuid=held.uuid,
        index=str(held.index),
        pci_address=held.pci_address,
        resource=held.resource,
        owner=owner,
        since="2026-01-02T03:04:05Z",
    )
