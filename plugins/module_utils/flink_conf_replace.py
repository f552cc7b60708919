"""One of Flink's configuration files replaced as one, or left as it is.

What the new file is given is given to its descriptor: the folder may belong to the user that runs Flink, who could put
a link in the place of a name. What a killed run left beside the file, readable for its owner alone, goes with the next
one that writes; that there is one is certain, since the file isn't as it shall be. Reading takes nothing away.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import replace as changed
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils import host_files_disk as disk
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_place import inside
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import look
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_files import ConfFile
    from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import State

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KERNEL_S = "security."  # labels that the kernel gives by itself, and not everyone may


def replace(file: ConfFile, content: bytes, *, backup: bool) -> str:
    """Put the content there, with owner, mode, ACL and extended attributes as before; returns where a backup is.

    Another name of the same file, a hard link, keeps the old content. ``FilingError`` if the file is not as it was
    found, since whoever changed it would lose that, and for what the system refuses.
    """
    folder, name = os.path.split(file.place)
    kept = f"{name}.{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}" if backup else ""
    try:
        with inside(folder):
            if look(name) != file.state:
                raise FilingError(f"{file.place} was changed meanwhile: run again")
            _swap(name, file.state, content, kept)
            _sync(file.place)
    except OSError as error:
        raise FilingError(
            f"{file.place} is as it was, since it can't be replaced ({error.strerror}): see its attributes (lsattr) and"
            " its file system (df), then run again"
        ) from error
    return os.path.join(folder, kept) if kept else ""


def _swap(name: str, old: State, content: bytes, kept: str) -> None:
    """On any failure nothing stays beside the file: each copy holds all its secrets."""
    with contextlib.ExitStack() as undoing:
        undoing.callback(_remove, disk.staged(name))
        if kept:
            _stage(name, old)
            times = os.lstat(name)
            os.utime(disk.staged(name), ns=(times.st_atime_ns, times.st_mtime_ns), follow_symlinks=False)
            Path(disk.staged(name)).rename(kept)
            undoing.callback(_remove, kept)
        _stage(name, changed(old, content=content))
        disk.land(name)
        undoing.pop_all()


def _stage(name: str, state: State) -> None:
    """Not ``disk.stage``: that copies attributes by names, which is for folders that are root's alone."""
    new = disk.staged(name)
    disk.remove(new)
    with os.fdopen(os.open(new, _NEW, 0o600), "wb") as file:
        file.write(state.content or b"")
        file.flush()
        os.fchown(file.fileno(), state.uid, state.gid)
        _copy_attributes(name, file.fileno())
        os.fchmod(file.fileno(), state.mode)
        os.fsync(file.fileno())


def _copy_attributes(old: str, new: int) -> None:
    """Those of the old file and no others: a folder may have a default ACL, which would open the new one to more."""
    if not hasattr(os, "listxattr"):  # not Linux, where render_conf may run
        return
    try:
        wanted = os.listxattr(old, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return
        raise
    for name in os.listxattr(new):
        if name not in wanted and not name.startswith(_KERNEL_S):
            os.removexattr(new, name)
    for name in wanted:
        try:
            os.setxattr(new, name, os.getxattr(old, name, follow_symlinks=False))
        except PermissionError:
            if not name.startswith(_KERNEL_S):
                raise


def _sync(place: str) -> None:
    try:
        disk.sync_folder(Path())
    except OSError as error:
        raise FilingError(f"{place} is replaced, but a crash may undo it ({error.strerror}): see its disk") from error


def _remove(name: str) -> None:
    with contextlib.suppress(OSError):  # it is the failure before that is told
        disk.remove(name)
