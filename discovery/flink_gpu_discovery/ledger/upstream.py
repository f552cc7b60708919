"""The coordination file of Flink's own script (``gpu-discovery-common.sh``): lines of ``index pid``.

It knows neither UUIDs nor start times, so it is never used as it is: refused, or turned into records once.
"""

from __future__ import annotations

from flink_gpu_discovery.errors import LedgerDamagedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class UpstreamFileError(LedgerDamagedError):
    """The ledger's path names an upstream coordination file; ``entries`` are its (index, pid) pairs."""

    def __init__(self, path: str, entries: tuple[tuple[str, int], ...]) -> None:
        found = f"is the coordination file of Flink's own script with {len(entries)} entries" if entries else "is empty"
        super().__init__(
            f"{path} {found}, not a ledger", "name another --ledger, or let --enable-coordination-mode migrate it"
        )
        self.entries: Final = entries


def recognise(content: bytes) -> tuple[tuple[str, int], ...] | None:
    """Its (index, pid) pairs, or None if it is something else. Upstream leaves an empty file behind, too."""
    entries = []
    for line in content.split(b"\n"):
        words = line.split()
        if not words:
            continue
        if len(words) != 2 or not all([word.isdigit() and len(word) <= 7 for word in words]):
            return None
        entries.append((str(int(words[0])), int(words[1])))
    return tuple(entries)
