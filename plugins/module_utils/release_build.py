"""Bring a release on a host to what its MANIFEST says: its files, then the bytecode that its Python makes of them."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.release_files import (
    TOP,
    make_folder,
    read,
    remove,
    replace,
    sync_tree,
)
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import (
    FILE,
    MANIFEST,
    SCRIPTS,
    STAMP,
    Entry,
    ReleaseError,
    folders_of,
    parse,
    render,
    sha256,
    split_shebang,
    with_interpreter,
)
from ansible_collections.flinkops.gpu.plugins.module_utils.release_python import Python, compile_tree
from ansible_collections.flinkops.gpu.plugins.module_utils.release_state import (
    EXTRA,
    State,
    bytecode_paths,
    survey,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_COMPILATIONS = 2  # where bytecode was missing, a call of root's may have put its own there during the first


@dataclass(frozen=True)
class Build:
    """One release to be completed: its folder in the end, its MANIFEST, its Python, the archive if there is one."""

    final: Path
    manifest: str
    python: Python
    archive: str
    held: int

    def complete(self, folder: Path, *, used: int) -> None:
        """Bring ``folder`` to what it must be, and see that it is; ``used`` becomes the mtime of its MANIFEST."""
        state = self._survey(folder)
        contents = contents_from(self.archive, [item for item in parse(self.manifest) if item.path in state.lacking])
        self._mend(folder, state.damage, {MANIFEST: self.manifest.encode(), **contents}, used)
        for _ in range(_COMPILATIONS):
            if self._survey(folder).bytecode:
                self._compile(folder)
        sync_tree(folder)
        left = self._survey(folder)
        for path, why in (*left.damage.items(), *left.bytecode.items()):
            raise ReleaseError(f"{folder / path} is wrong although just written ({why}): mend the disk and run again")

    def _survey(self, folder: Path) -> State:
        return survey(folder, self.manifest, self.python)

    def _mend(self, folder: Path, damage: Mapping[str, str], contents: Mapping[str, bytes], used: int) -> None:
        """Replace what is damaged; folders come before what is in them, as they are shorter."""
        modes = {item.path: item.mode for item in parse(self.manifest)}
        folders = {TOP, *folders_of(set(modes))}
        for path in damage:
            if path in folders:
                make_folder(folder / path)
            elif path == MANIFEST:
                replace(folder / path, contents[path], FILE, mtime_ns=used)
            elif path in modes:
                content = contents[path] if path in contents else split_shebang(read(folder / path))[1]
                replace(folder / path, self._started(path, content), modes[path])
            else:
                remove(folder / path)

    def _started(self, path: str, content: bytes) -> bytes:
        return with_interpreter(content, self.python.path) if path.startswith(SCRIPTS) else content

    def _compile(self, folder: Path) -> None:
        """Make the bytecode anew; the stamp comes last, so that it never lists what isn't there."""
        names = bytecode_paths(parse(self.manifest), self.python)
        for path, why in self._survey(folder).bytecode.items():
            if why == EXTRA:
                remove(folder / path)
        for path in sorted(folders_of(names), key=len):
            make_folder(folder / path)
        for path in names:
            _clear(folder / path)
        compile_tree(self.python, folder, self.final, held=self.held)
        listed = [Entry(sha256(read(folder / path)), FILE, path) for path in names]
        sync_tree(folder)
        replace(folder / STAMP, f"{self.python.line()}\n{render(listed)}".encode(), FILE)


def _clear(path: Path) -> None:
    """Make way for the compiler, which replaces plain files only."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        remove(path)


def contents_from(archive: str, wanted: Iterable[Entry]) -> dict[str, bytes]:
    """The wanted files out of the archive; a member counts only under its name and with its hash."""
    missing = {item.path: item.sha256 for item in wanted}
    found: dict[str, bytes] = {}
    if not missing:
        return found
    try:
        with tarfile.open(archive, "r:") as members:
            for member in members:
                if member.isreg() and member.name in missing:
                    _take(members, member, missing[member.name], found)
    except (OSError, tarfile.TarError) as error:
        raise ReleaseError(f"the archive {archive!r} can't be read ({error}): ship the release again") from error
    if lacking := sorted(missing.keys() - found.keys()):
        raise ReleaseError(f"the archive {archive!r} lacks {', '.join(lacking[:5])}: ship the release again")
    return found


def _take(members: tarfile.TarFile, member: tarfile.TarInfo, expected: str, found: dict[str, bytes]) -> None:
    stream = members.extractfile(member)
    content = stream.read() if stream else b""
    if sha256(content) == expected:
        found[member.name] = content
