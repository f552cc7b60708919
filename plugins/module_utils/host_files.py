"""A set of files and links on a host, installed as one, with what the operator had there kept for the way back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils import host_files_disk as disk
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_after import carry_out
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_lost import find_lost
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_plan import make_plan
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_after import After
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_plan import Plan
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_steps import Step
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import Wanted
    from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store

    Label = Callable[[str, str], None]


@dataclass(frozen=True)
class Outcome:
    """What a run did; under check mode, what one would do."""

    changed: bool
    paths: list[str]
    actions: list[str]
    diff: list[dict[str, str]]
    made: list[str]


def arrange(
    store: Store,
    wanted: Sequence[Wanted],
    *,
    folder: str,
    check: bool,
    label: Label,
    after: Sequence[After] = (),
    known: Sequence[str] = (),
) -> Outcome:
    """Let exactly the wanted files stand on the host, of all that the record knows; an empty set removes everything.

    ``folder`` is a private one where validators look at files. ``label(staged, path)`` gives a staged file the
    security context of its path. ``after`` says whom to tell of changes. ``known``: where else to look for our own,
    whose record may be lost. ``FilingError`` or ``OSError`` if something is refused; then nothing has landed yet, but
    where the system failed in the middle, or somebody can't be told.
    """
    with store.locked(reading=check or not (wanted or store.has_traces or find_lost(store, known, ()))):
        plan = make_plan(store, wanted, after, known)
        changed = {step.path for step in plan.changes}
        notes = validate([each for each in wanted if each.path in changed], folder, lenient=check)
        actions = plan.actions()
        if actions and not check:
            _carry_out(plan, store, label)
            notes += [] if wanted else [f"leave {path}" for path in map(store.original, store.unrestored())]
    return Outcome(
        changed=bool(actions),
        paths=[step.path for step in plan.changes],
        actions=actions + notes,
        diff=[_difference(step) for step in plan.changes],
        made=list(plan.record.made),
    )


def _carry_out(plan: Plan, store: Store, label: Label) -> None:
    """At each point of it the record names all that was touched, and what was replaced is saved."""
    for step in plan.steps:
        _save(step, store)
    if plan.intended != plan.record:
        store.save(plan.intended)
    for step in plan.steps:
        disk.remove(disk.staged(step.path))
    _land(plan.changes, label)
    for folder in plan.folders.empty:
        Path(folder).rmdir()
    if plan.landed != plan.intended:
        store.save(plan.landed)
    for step in plan.steps:
        if step.final is None:
            disk.remove(store.original(step.path))
    for command in plan.due:
        carry_out(command)
    if plan.final != plan.landed or plan.clears:
        store.save(plan.final)


def _save(step: Step, store: Store) -> None:
    if step.saves:
        store.keep_original(step.path)
    if step.kept and not os.path.lexists(step.kept):
        os.link(step.path, step.kept, follow_symlinks=False)
        disk.sync_folder(Path(step.kept).parent)


def _land(changes: Sequence[Step], label: Label) -> None:
    """Make everything first, so that a full disk, say, is met before the first replacement."""
    arriving = [step for step in changes if step.after.exists]
    try:
        for step in arriving:
            _stage(step, label)
        for step in changes:
            _replace(step)
    except BaseException:
        for step in arriving:
            disk.remove(disk.staged(step.path))
        raise
    for folder in {Path(step.path).parent for step in changes}:
        if folder.is_dir():
            disk.sync_folder(folder)


def _stage(step: Step, label: Label) -> None:
    disk.make_folder(Path(step.path).parent)
    new = disk.stage(step.path, step.after, step.source)
    if not step.source:  # a saved original brings its own context along
        label(new, step.path)


def _replace(step: Step) -> None:
    if step.after.exists:
        disk.land(step.path)
    else:
        disk.remove(step.path)


def _difference(step: Step) -> dict[str, str]:
    """In Ansible's form; mode and owner are shown where only they differ."""
    before, after = step.before, step.after
    attributes = before.fingerprint == after.fingerprint
    return {
        "before_header": step.path if before.exists else f"{step.path} (absent)",
        "after_header": step.path if after.exists else f"{step.path} (absent)",
        "before": before.text(with_attributes=attributes),
        "after": after.text(with_attributes=attributes),
    }
