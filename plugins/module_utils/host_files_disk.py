"""Making, replacing and removing files and links so that each is there whole or not at all, whatever interrupts."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import State

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def staged(path: str) -> str:
    """Where the next state of ``path`` is made: beside it, by a name that sudo, systemd and D-Bus pass over.

    One fixed name, so that the next run finds what an interrupted one left.
    """
    return str(Path(path).with_name(f".{Path(path).name}.flink-gpu~"))


def stage(path: str, state: State, like: str = "") -> str:
    """Make the state beside ``path`` and sync it; its times and extended attributes are those of ``like``."""
    new = staged(path)
    remove(new)
    if state.content is None:
        Path(new).symlink_to(str(state.target))
        os.lchown(new, state.uid, state.gid)
        _copy_attributes(like, new)
        return new
    descriptor = os.open(new, _NEW, 0o600)
    try:
        _write(descriptor, state.content)
        os.fchown(descriptor, state.uid, state.gid)
        os.fchmod(descriptor, state.mode)  # after chown(2), which takes set-user-ID bits
        _copy_attributes(like, new)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return new


def land(path: str) -> None:
    """Let what was staged take the place of ``path``.

    Not ``AnsibleModule.atomic_move``: that gives the file the mode and owner of the old one, or a mode after the
    umask, before they can be corrected, and copies where it can't rename. What it does for SELinux is done to the
    staged file.
    """
    Path(staged(path)).rename(path)


def put(path: str, state: State, like: str = "") -> None:
    """Stage, land and sync in one."""
    stage(path, state, like)
    land(path)
    sync_folder(Path(path).parent)


def remove(path: str) -> None:
    """Remove a file or link that may be there."""
    Path(path).unlink(missing_ok=True)


def make_folder(path: Path, mode: int = 0o755) -> None:
    """A folder with exactly this mode from its first moment on; its parents are made too, open to all."""
    if path.is_dir():
        return
    make_folder(path.parent)
    umask = os.umask(0)
    try:
        path.mkdir(mode, exist_ok=True)  # another run may have made it just now
    finally:
        os.umask(umask)
    sync_folder(path.parent)


def is_empty_folder(path: Path) -> bool:
    """Whether there is a folder with nothing in it."""
    return path.is_dir() and not any(path.iterdir())


def remove_folder_if_empty(path: Path) -> None:
    """Remove a folder that may be there, and may be in use."""
    if is_empty_folder(path):
        path.rmdir()


def sync_folder(path: Path) -> None:
    """Let names made and removed in a folder outlast a crash of the host."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy_attributes(like: str, new: str) -> None:
    if like:
        shutil.copystat(like, new, follow_symlinks=False)


def _write(descriptor: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(descriptor, content[written:])
