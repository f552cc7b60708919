"""What a run does with one path: take it and keep it right, or give it back to the operator."""

from __future__ import annotations

import os
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.module_utils import host_files_disk as disk
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import NOTHING, State, look
from ansible_collections.flinkops.gpu.plugins.module_utils.record import Entry, FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import Wanted
    from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store

_KEPT = "flink-gpu-removed"  # sudo, systemd and D-Bus pass over a name with this ending


@dataclass(frozen=True)
class Step:
    """One path: ``after`` takes the place of ``before`` where they differ."""

    path: str
    before: State
    after: State
    intended: Entry
    final: Entry | None
    saves: bool = False  # what stands there is the operator's and is copied first
    is_edited: bool = False  # what stands there is no longer what a run wrote
    source: str = ""  # the saved original that is restored
    kept: str = ""  # by which name the operator's edited file stays
    leftover: str = ""  # of an interrupted run

    @property
    def is_change(self) -> bool:
        """Whether what stands there changes."""
        return bool(self.before != self.after)

    def words(self) -> list[str]:
        """What it does, for people."""
        words = [f"save what stood at {self.path}"] if self.saves else []
        words += [f"keep {self.path}, which was edited, as {self.kept}"] if self.kept else []
        return words + ([self._verb()] if self.is_change else [])

    def _verb(self) -> str:
        if not self.after.exists:
            return f"remove {self.path}"
        if self.source:
            return f"restore {self.path}"
        if not self.before.exists:
            return f"create {self.path}"
        if self.before.fingerprint == self.after.fingerprint:
            return f"correct mode and owner of {self.path}"
        return f"replace {self.path}{', which was edited' if self.is_edited else ''}"


def take(store: Store, wanted: Wanted, entry: Entry | None) -> Step:
    """Let the wanted state stand there. What the role finds there at first is the operator's, unless it is ours."""
    path, new = wanted.path, wanted.state.fingerprint
    found, saved = look(path), look(store.original(path))
    written = entry.written if entry else ()
    is_theirs = entry is None and found.exists and not _is_ours(found, wanted.state)
    # An original that no record names: the record was lost. Then both that and what stands there may be theirs.
    is_second = is_theirs and saved.exists and saved != found
    original = entry.original if entry else is_theirs or saved.exists
    return Step(
        path=path,
        before=found,
        after=wanted.state,
        intended=Entry(path, tuple(dict.fromkeys([*written, new])), original),
        final=Entry(path, (new,), original),
        saves=is_theirs and not is_second,
        is_edited=bool(entry) and found.fingerprint not in (*written, new),
        kept=_free_name(path) if is_second else "",
        leftover=_leftover(path),
    )


def give_back(store: Store, entry: Entry) -> Step:
    """Let what stood there before stand there again, or nothing. What was edited meanwhile stays, by another name."""
    path = entry.path
    source = store.original(path) if entry.original else ""
    if source and not os.path.lexists(source):
        raise FilingError(
            f"{source}, which stood at {path} before, is missing: put it there from a backup, or set"
            f' "original" of {path} to false in {store.path}'
        )
    before, after = look(path), look(source) if source else NOTHING
    is_edited = before.exists and before.fingerprint not in (*entry.written, after.fingerprint)
    kept = _free_name(path) if is_edited else ""
    return Step(path, before, after, entry, None, False, is_edited, source, kept, _leftover(path))


def _is_ours(found: State, wanted: State) -> bool:
    """Whether it is from an installation whose record is lost."""
    return found.is_marked or (found.target is not None and found.target == wanted.target)


def _leftover(path: str) -> str:
    staged: str = disk.staged(path)
    return staged if os.path.lexists(staged) else ""


def _free_name(path: str) -> str:
    """A name for what stands at ``path``; the one that an interrupted run gave it already, if there is one."""
    number, name = 1, f"{path}.{_KEPT}"
    while os.path.lexists(name) and not os.path.samestat(os.lstat(name), os.lstat(path)):
        number += 1
        name = f"{path}.{_KEPT}-{number}"
    return name
