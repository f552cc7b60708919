"""Read the ledger independently of the package that wrote it: what its description promises, and nothing more.

``docs/adr/0001-ledger-format.md`` describes it: a header, a line of 13 tab-separated fields per GPU held, a closing
line with their count.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_FIELDS = 13


class TornLedgerError(Exception):
    """The ledger is not whole; the message says what is wrong."""


@dataclass(frozen=True)
class Holding:
    """A GPU that is recorded to the owner with this PID and start time."""

    index: str
    owner: tuple[int, int]


def read_ledger(path: Path) -> tuple[Holding, ...] | None:
    """All that is recorded; None where there is no ledger."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    lines = content.split(b"\n")
    if not lines[0].startswith(b"#flink-gpu-ledger 1\tuuid\tindex\t"):
        raise TornLedgerError(f"its first line is {lines[0][:60]!r}")
    records = lines[1:-2]
    if lines[-2:] != [b"#end %d" % len(records), b""]:
        raise TornLedgerError(f"{len(records)} records end with {lines[-2:]!r}")
    rows = [line.decode("ascii").split("\t") for line in records]
    if any([len(row) != _FIELDS for row in rows]) or len({row[0] for row in rows}) != len(rows):
        raise TornLedgerError(f"a record is cut, or a GPU is recorded twice: {content!r}")
    return tuple([Holding(row[1], (int(row[4]), int(row[5]))) for row in rows])
