"""What the role made besides files, such as a user or a hold on a package: noted, and struck off when undone."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ansible_collections.flinkops.gpu.plugins.module_utils.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store


@dataclass(frozen=True)
class Notes:
    """The record's list before and after, and the paths that it names."""

    before: list[str]
    made: list[str]
    files: list[str]

    @property
    def changed(self) -> bool:
        """Whether the list is another one now."""
        return self.before != self.made


def note(store: Store, made: Sequence[str], unmade: Sequence[str], *, check: bool) -> Notes:
    """Add ``made`` and strike off ``unmade``; with neither, only read. A record of nothing is removed."""
    with store.locked(reading=check or not (made or unmade)):
        before: Record = store.load()
        after = replace(before, made=tuple(_merged(before.made, made, unmade)))
        if not check and (made or unmade) and (after != before or after == Record()):
            store.save(after)
    return Notes(list(before.made), list(after.made), [entry.path for entry in before.files])


def _merged(present: Sequence[str], made: Sequence[str], unmade: Sequence[str]) -> list[str]:
    return [each for each in dict.fromkeys([*present, *made]) if each not in unmade]
