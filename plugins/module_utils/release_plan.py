"""What is to be done on a host so that a release is installed, rolled back to, or removed: steps, each with its words.

A real run takes the steps, check mode only says them, so neither can promise what the other doesn't do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.release_build import Build
from ansible_collections.flinkops.gpu.plugins.module_utils.release_files import make_folder, remove, sync
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError, fits
from ansible_collections.flinkops.gpu.plugins.module_utils.release_python import Python, choose
from ansible_collections.flinkops.gpu.plugins.module_utils.release_state import (
    State,
    manifest_of,
    stamped,
    survey,
)
from ansible_collections.flinkops.gpu.plugins.module_utils.release_store import NEW, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAMED = 5  # so many damaged files are named in one step's words


@dataclass(frozen=True)
class Step:
    """One thing to do, and what is said of it."""

    words: tuple[str, ...]
    act: Callable[[], object]


@dataclass(frozen=True)
class View:
    """How the host stands, before or after."""

    current: str = ""
    releases: tuple[str, ...] = ()
    python: Python | None = None
    damage: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """For Ansible's diff."""
        lines = [f"current: {self.current or 'none'}", f"releases: {', '.join(self.releases) or 'none'}"]
        lines.append(f"python: {self.python.path} {self.python.version}" if self.python else "python: none")
        return "\n".join([*lines, *(f"{path}: {why}" for path, why in self.damage.items())]) + "\n"


@dataclass(frozen=True)
class Plan:
    """The steps, what they lead from and to, and the files for which an archive is needed first.

    ``previous``: where a rollback without a name would go after that. ``note``: why nothing is to be done.
    """

    steps: tuple[Step, ...]
    before: View
    after: View
    lacking: tuple[str, ...] = ()
    previous: str = ""
    note: str = ""


@dataclass(frozen=True)
class Wish:
    """What is wanted: the module's parameters (``modules/release.py``)."""

    state: str
    name: str = ""
    manifest: str = ""
    archive: str = ""
    python: str = ""
    keep: int = 2
    to: str = ""


def plan(store: Store, wish: Wish, *, held: int = -1) -> Plan:
    """Look at the host and decide; ``held`` is the lock's descriptor where the steps will be taken."""
    if wish.keep < 2:  # noqa: PLR2004
        raise ReleaseError(f"keep: {wish.keep} is too few, calls may still read the previous release: keep 2 or more")
    if wish.state == "absent":
        return _removal(store)
    store.require_parent()
    store.require_trusted()
    if wish.state == "present":
        return _installation(store, wish, held)
    return _rollback(store, wish, held)


def _installation(store: Store, wish: Wish, held: int) -> Plan:
    if not fits(wish.name, wish.manifest):
        raise ReleaseError(f"name: {wish.name!r} doesn't fit the manifest: let the action plugin set both")
    python = choose(wish.python)
    build = Build(store.releases / wish.name, wish.manifest, python, wish.archive, held)
    state = survey(build.final, build.manifest, python)
    kept = [wish.name, *(name for name in store.names() if name != wish.name)]
    kept, pruned = kept[: wish.keep], kept[wish.keep :]
    steps = [*_preparation(store), *_completion(store, build, state), *_switching(store, wish.name, rolled_back=False)]
    steps += [_step(f"remove release {name}", store.discard, store.releases / name) for name in pruned]
    return Plan(
        steps=tuple(steps),
        before=_view(store, state if wish.name in store.names() else None),
        after=View(wish.name, tuple(kept), python),
        lacking=() if wish.archive else state.lacking,
        previous=next((name for name in kept if name != wish.name and store.used(name)), ""),
    )


def _rollback(store: Store, wish: Wish, held: int) -> Plan:
    stays = not wish.to and store.rolled_back()
    name = wish.to or (store.current() if stays else _before_current(store))
    if name not in store.names():
        raise ReleaseError(f"to: {name!r} is not installed under {store.releases} ({_known(store)})")
    build = Build(store.releases / name, manifest_of(store.releases / name), choose(wish.python), "", held)
    state = survey(build.final, build.manifest, build.python)
    if state.lacking:
        raise ReleaseError(f"release {name} is damaged ({_listed(state.damage)}): choose another one ({_known(store)})")
    after = View(name, (name, *(other for other in store.names() if other != name)), build.python)
    steps = [*_preparation(store), *_completion(store, build, state), *_switching(store, name, rolled_back=True)]
    note = f"{name} stays current, it was rolled back to already; name another release to go to that" if stays else ""
    return Plan(tuple(steps), _view(store, state), after, note=note)


def _before_current(store: Store) -> str:
    """The release that was current most recently before this one."""
    names: list[str] = store.names()
    for name in names:
        if name != store.current() and store.used(name):
            return name
    raise ReleaseError(f"there is no release to roll back to under {store.releases} ({_known(store)})")


def _known(store: Store) -> str:
    return f"there are: {', '.join(store.names()) or 'none'}; current: {store.current() or 'none'}"


def _removal(store: Store) -> Plan:
    if store.root.is_symlink():
        raise ReleaseError(f"{store.root} is a symbolic link: remove it, and what it leads to, by hand")
    ours = (store.link, store.releases)  # what else is in the root is the record of other files of the role
    steps = [_step(f"remove {path}", remove, path) for path in ours if _is_there(path)]
    if store.root.is_dir() and not set(store.root.iterdir()) - set(ours):
        steps.append(_step(f"remove {store.root}", store.root.rmdir))
    return Plan(tuple(steps), _view(store, None), View())


def _preparation(store: Store) -> list[Step]:
    """Clear up after interrupted runs, and have the folders there."""
    steps = [_step(f"remove leftover {path.name}", remove, path) for path in store.leftovers()]
    for folder in store.closed_folders():
        words = f"set the mode of {folder} to 0755" if folder.is_dir() else f"make folder {folder}"
        steps.append(_step(words, _open_folder, folder))
    return steps


def _open_folder(folder: Path) -> None:
    make_folder(folder)
    sync(folder.parent)


def _completion(store: Store, build: Build, state: State) -> list[Step]:
    """Unpack a release that isn't there, mend one that is damaged, compile for this Python."""
    name, python = build.final.name, build.python
    compiling = f"compile for Python {python.version} ({python.path})"
    if name not in store.names():
        return [Step((f"unpack {name}", compiling), partial(_unpack, store, build))]
    mending = f"mend {name}: {_listed(state.damage)}"
    words = [*([mending] if state.damage else []), *([compiling] if state.bytecode else [])]
    return [Step(tuple(words), partial(build.complete, build.final, used=store.used(name)))] if words else []


def _unpack(store: Store, build: Build) -> None:
    """Complete it beside, then put it in its place at once."""
    beside = store.releases / f"{NEW}{build.final.name}"
    try:
        build.complete(beside, used=0)
        if _is_there(build.final):
            store.discard(build.final)
        beside.rename(build.final)
    finally:
        remove(beside)
    sync(store.releases)


def _switching(store: Store, name: str, *, rolled_back: bool) -> list[Step]:
    if store.target() != store.target_for(name, rolled_back=rolled_back):
        before = store.current() or store.target() or "none"
        noting = f"note that {name} was {'rolled back to' if rolled_back else 'installed'}"
        words = f"switch current from {before} to {name}" if before != name else noting
        return [Step((words,), partial(store.switch, name, rolled_back=rolled_back))]
    if not store.is_latest(name):
        return [_step(f"note that {name} was made current last", store.note_use, name)]
    return []


def _view(store: Store, state: State | None) -> View:
    python = stamped(store.releases / store.current()) if store.current() else None
    return View(store.current(), tuple(store.names()), python, state.damage if state else {})


def _listed(damage: Mapping[str, str]) -> str:
    """In words, the first few by name."""
    words = [f"{path} ({why})" for path, why in damage.items()]
    more = len(words) - _NAMED
    return ", ".join([*words[:_NAMED], *([f"and {more} more"] if more > 0 else [])])


def _is_there(path: Path) -> bool:
    return path.is_symlink() or path.exists()


def _step(words: str, function: Callable[..., object], *arguments: object) -> Step:
    return Step((words,), partial(function, *arguments))
