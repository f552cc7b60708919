"""What a run has to do on the host: it is looked at, and nothing is changed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_after import due
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_folders import plan_folders
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_lost import find_lost
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_steps import give_back, take
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_trust import check_folders
from ansible_collections.flinkops.gpu.plugins.module_utils.record import Entry, FilingError, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_after import After
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_folders import Folders
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_steps import Step
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import Wanted
    from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store


@dataclass(frozen=True)
class Plan:
    """A whole run over the paths that are wanted or recorded."""

    record: Record
    steps: tuple[Step, ...]
    folders: Folders
    due: tuple[str, ...]
    clears: bool  # whether the record itself goes
    lost: tuple[str, ...] = ()  # paths that are ours, and that no record names

    @property
    def intended(self) -> Record:
        """What is recorded before anything is done: every state that an interruption may leave."""
        files = _sorted(step.intended for step in self.steps)
        return Record(files, self.folders.intended, self.record.made, self.due)

    @property
    def final(self) -> Record:
        """What is recorded when all is done."""
        files = _sorted(step.final for step in self.steps if step.final is not None)
        return Record(files, self.folders.final if files else (), self.record.made)

    @property
    def landed(self) -> Record:
        """What is recorded when all files are in their places, and nobody was told yet."""
        return replace(self.final, due=self.due)

    @property
    def changes(self) -> tuple[Step, ...]:
        """The steps that change what stands at their paths."""
        return tuple(step for step in self.steps if step.is_change)

    def actions(self) -> list[str]:
        """All that it changes, in words; empty if there is nothing to do."""
        words = [f"remove {step.leftover}, which an interrupted run left" for step in self.steps if step.leftover]
        words += [f"take {path} for an earlier installation's: no record names it" for path in self.lost]
        words += [f"make folder {path}" for path in self.folders.new]
        words += [each for step in self.steps for each in step.words()]
        words += [f"remove the empty folder {path}" for path in self.folders.empty]
        words += [f"run {command}" for command in self.due]
        words += ["remove the record"] if self.clears else []
        return words or (["bring the record up to date"] if self.final != self.record else [])


def make_plan(store: Store, wanted: Sequence[Wanted], after: Sequence[After] = (), known: Sequence[str] = ()) -> Plan:
    """Compare the host with what is wanted there, which is the complete set; ``FilingError`` for what is refused."""
    record: Record = store.load()
    entries = {entry.path: entry for entry in record.files}
    paths = [each.path for each in wanted]
    lost = find_lost(store, known, [*paths, *entries])
    lost_paths = tuple(entry.path for entry in lost)
    for path in dict.fromkeys([*paths, *entries, *lost_paths]):
        _check_place(store, path)
    steps = [take(store, each, entries.get(each.path)) for each in wanted]
    steps += [give_back(store, entry) for entry in (*record.files, *lost) if entry.path not in paths]
    folders = plan_folders(record.folders, paths, steps)
    commands = (*record.due, *due(after, [step.path for step in steps if step.is_change]))
    clears = not wanted and not record.made and (store.has_traces or bool(lost))
    return Plan(record, tuple(steps), folders, tuple(dict.fromkeys(commands)), clears, lost_paths)


def _check_place(store: Store, path: str) -> None:
    if store.owns(path):
        raise FilingError(f"files: {path} belongs to the record itself: name another")
    check_folders(path)


def _sorted(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    return tuple(sorted(entries, key=lambda entry: entry.path))
