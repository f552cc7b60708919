"""A folder's files as values: looked at, compared, put back."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

LEDGER, LOCK, NEW = "ledger", "ledger.lock", "ledger.new"
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


@dataclass(frozen=True)
class Entry:
    """One file."""

    name: str
    mode: int
    group: int
    content: bytes


@dataclass(frozen=True)
class Files:
    """What a folder holds, ascending by name; None where there is no folder."""

    entries: tuple[Entry, ...] | None

    def names(self) -> list[str]:
        """The names of the files."""
        return [entry.name for entry in self.entries or ()]

    def ledger(self) -> bytes | None:
        """The ledger's content, None where it is missing."""
        return next((entry.content for entry in self.entries or () if entry.name == LEDGER), None)

    def timeless(self) -> Files:
        """The same with every time blanked, since no two calls record the same one."""
        if self.entries is None:
            return self
        return Files(tuple(Entry(e.name, e.mode, e.group, _TIME.sub(b"", e.content)) for e in self.entries))


def look(folder: Path) -> Files:
    """The folder as it is."""
    if not folder.exists():
        return Files(None)
    return Files(tuple(_entry(path) for path in sorted(folder.iterdir())))


def make(folder: Path) -> None:
    """Create it, as shared with its group as the program would, if it is missing."""
    if not folder.exists():
        folder.mkdir()
        folder.chmod(0o770)


def put_back(folder: Path, files: Files) -> None:
    """Make it hold ``files`` and nothing else."""
    if look(folder) == files:
        return
    for path in folder.glob("*"):
        path.unlink()
    if files.entries is None:
        folder.rmdir()
        return
    make(folder)
    for entry in files.entries:
        path = folder / entry.name
        path.write_bytes(entry.content)
        path.chmod(entry.mode)
        os.chown(path, -1, entry.group)


def _entry(path: Path) -> Entry:
    status = path.stat()
    return Entry(path.name, status.st_mode & 0o7777, status.st_gid, path.read_bytes())
