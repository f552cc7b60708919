"""Files and folders below a release's root: how they stand, how they are replaced, made durable and removed.

Scripts of a release may be running while it is mended, so every file is replaced by a rename.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import sha256, split_shebang

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER_MODE = 0o755
TOP = "."
_LARGEST = 32 << 20  # what is larger is none of ours, and not worth reading


@dataclass(frozen=True)
class Node:
    """How one path stands: ``file``, ``folder`` or ``other``; mode; owner; and for files their content, as shipped."""

    kind: str
    mode: int
    owner: str = "0:0"
    sha256: str = ""
    interpreter: str = ""


def tree(folder: Path) -> dict[str, Node]:
    """Every path below ``folder``, itself as ``.``, by its relative name."""
    found = {TOP: node(folder)}
    if found[TOP].kind == "folder":
        for path in _below(folder):
            found[path.relative_to(folder).as_posix()] = node(path)
    return found


def _below(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            yield Path(parent, name)


def node(path: Path) -> Node:
    """One path, without following a link."""
    status = path.lstat()
    mode, owner = stat.S_IMODE(status.st_mode), f"{status.st_uid}:{status.st_gid}"
    if stat.S_ISDIR(status.st_mode):
        return Node("folder", mode, owner)
    if not stat.S_ISREG(status.st_mode):
        return Node("other", mode, owner)
    if status.st_size > _LARGEST:
        return Node("file", mode, owner)
    interpreter, content = split_shebang(read(path))
    return Node("file", mode, owner, sha256(content), interpreter)


def read(path: Path) -> bytes:
    """A file's content; neither a link nor a pipe is followed that took its place meanwhile."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        return stream.read(_LARGEST)


def replace(path: Path, content: bytes, mode: int, *, mtime_ns: int | None = None) -> None:
    """Put a durable file of root's there, at once."""
    if path.is_dir() and not path.is_symlink():
        remove(path)
    beside = path.with_name(f".{path.name}.new")
    remove(beside)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fchown(stream.fileno(), 0, 0)
        os.fchmod(stream.fileno(), mode)
        if mtime_ns is not None:
            os.utime(stream.fileno(), ns=(mtime_ns, mtime_ns))
        os.fsync(stream.fileno())
    beside.replace(path)


def make_folder(path: Path) -> None:
    """A folder of root's, in place of whatever else is there."""
    if path.is_symlink() or not path.is_dir():
        remove(path)
        path.mkdir(FOLDER_MODE)
    os.chown(path, 0, 0)
    path.chmod(FOLDER_MODE)


def remove(path: Path) -> None:
    """Whatever is there, if anything."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Make a file's content, or a folder's entries, survive a power cut."""
    with opened(path) as descriptor:
        os.fsync(descriptor)


def sync_tree(folder: Path) -> None:
    """The same for all below ``folder``, and for itself."""
    for path in (*_below(folder), folder):
        sync(path)


@contextmanager
def opened(path: Path) -> Iterator[int]:
    """A descriptor for reading."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
