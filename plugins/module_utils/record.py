"""The record: what the role put on a host, so that its removal leaves everything as it was; pure.

It is a JSON file for root alone. Each entry names a path, the fingerprints of all that the collection may have left
there, and whether what stood there before is kept beside the record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

VERSION = 1


class FilingError(Exception):
    """A refusal in one line: what is wrong, the value seen, and the mend."""


@dataclass(frozen=True)
class Entry:
    """A path that the role took. ``written`` has more than one fingerprint only while a run is at work there."""

    path: str
    written: tuple[str, ...]
    original: bool


@dataclass(frozen=True)
class Record:
    """Paths taken, folders made for them, and whatever else the role made (``made``, in the order of making).

    ``due``: commands that tell others of changed files, and have not been run since.
    """

    files: tuple[Entry, ...] = ()
    folders: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    due: tuple[str, ...] = ()


def parse(content: bytes, path: str) -> Record:
    """The record in a file's content; ``FilingError`` for anything but what ``render`` writes."""
    try:
        found = json.loads(content.decode())
        version = found["version"]
        if version == VERSION:
            return Record(
                tuple(_entry(each) for each in _list(found["files"], dict)),
                tuple(_list(found["folders"], str)),
                tuple(_list(found["made"], str)),
                tuple(_list(found["due"], str)),
            )
    except (ValueError, KeyError, TypeError) as error:
        raise FilingError(
            f"the record {path} is damaged ({type(error).__name__}: {error}): put it back from a backup, or move it"
            " away and run with state present; what was there before the first run lies in before/ beside it"
        ) from error
    raise FilingError(
        f"the record {path} has version {version!r}, this collection knows {VERSION}: use the collection that wrote it"
    )


def render(record: Record) -> bytes:
    """The content of the record's file."""
    files = [{"path": each.path, "written": each.written, "original": each.original} for each in record.files]
    content = {"version": VERSION, "files": files, "folders": record.folders, "made": record.made, "due": record.due}
    return (json.dumps(content, indent=1) + "\n").encode()


def _entry(found: dict[str, Any]) -> Entry:
    path, original = found["path"], found["original"]
    if not isinstance(path, str) or not path.startswith("/") or not isinstance(original, bool):
        raise ValueError(f"{found} is no entry")
    return Entry(path, tuple(_list(found["written"], str)), original)


def _list(found: Any, kind: type) -> list[Any]:
    if not isinstance(found, list) or not all(isinstance(each, kind) for each in found):
        raise ValueError(f"{found!r} is no list of {kind.__name__}")
    return found
