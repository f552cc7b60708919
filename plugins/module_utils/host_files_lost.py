"""What an installation left on the host whose record is lost: known by its marker, or by where a link leads."""

from __future__ import annotations

import glob
import os

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import State, look
from ansible_collections.flinkops.gpu.plugins.module_utils.record import Entry, FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store


def find_lost(store: Store, known: Iterable[str], named: Iterable[str]) -> tuple[Entry, ...]:
    """Of the ``known`` paths, which may be patterns of glob(3), those that are ours and not ``named`` otherwise."""
    paths = {path for pattern in known for path in glob.glob(pattern)}
    found = {path: _state(path) for path in sorted(paths.difference(named))}
    marked = {path for path, state in found.items() if state.is_marked}
    releases = f"{store.folder}/current/"
    return tuple(
        Entry(path, (state.fingerprint,), os.path.lexists(store.original(path)))
        for path, state in found.items()
        if path in marked or state.target in marked or str(state.target).startswith(releases)
    )


def _state(path: str) -> State:
    try:
        return look(path)
    except FilingError:  # a folder, say, is none of ours
        return State()
