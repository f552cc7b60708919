"""Which folders a run makes for its files, and which of those made earlier it removes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_steps import Step


@dataclass(frozen=True)
class Folders:
    """``new`` ones, parents first; those that get ``empty``, children first; and what is recorded of them all."""

    new: tuple[str, ...]
    empty: tuple[str, ...]
    intended: tuple[str, ...]
    final: tuple[str, ...]


def plan_folders(recorded: Sequence[str], wanted: Iterable[str], steps: Iterable[Step]) -> Folders:
    """The folders of ``wanted`` are made; of the recorded ones that it needs no more, the empty ones go."""
    needed = {str(parent) for path in wanted for parent in Path(path).parents}
    new = {folder for folder in needed if not Path(folder).is_dir()}
    unneeded = [folder for folder in sorted(recorded, reverse=True) if folder not in needed and _is_folder(folder)]
    empty = _emptied(unneeded, _vanishing(steps))
    intended = {*recorded, *new}
    final = {folder for folder in intended if folder in needed or folder in unneeded} - set(empty)
    return Folders(tuple(sorted(new)), tuple(empty), tuple(sorted(intended)), tuple(sorted(final)))


def _emptied(folders: Iterable[str], vanishing: set[str]) -> list[str]:
    """Those of ``folders``, children first, that hold nothing but what vanishes."""
    empty: list[str] = []
    for folder in folders:
        if {str(path) for path in Path(folder).iterdir()} <= {*vanishing, *empty}:
            empty.append(folder)
    return empty


def _vanishing(steps: Iterable[Step]) -> set[str]:
    gone: set[str] = set()
    for step in steps:
        gone.add(step.leftover)
        if not step.after.exists and not step.kept:
            gone.add(step.path)
    return gone


def _is_folder(path: str) -> bool:
    return Path(path).is_dir() and not Path(path).is_symlink()
