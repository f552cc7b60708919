"""Where Flink's configuration lies: root goes there as the kernel does, but along no link that others could lead.

The folders may belong to the user that runs Flink, who could put a link to anywhere in their place.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_trust import check_folders
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_LINKS = 40  # MAXSYMLINKS in include/linux/namei.h
_MOUNTS = Path("/proc/self/mountinfo")  # its fifth field is where; see Documentation/filesystems/proc.rst


def real(path: str) -> str:
    """The path without links, ``.`` and ``..``; what is missing stays as it is named.

    ``FilingError`` for a link that is not followed. Not ``os.path.realpath``, which follows all.
    """
    here, links = "/", 0
    steps = _steps(os.path.join(os.getcwd(), path))
    while steps:
        name = steps.pop()
        step = os.path.dirname(here) if name == ".." else os.path.join(here, name)
        target = _followed(step)
        if not target:
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise FilingError(f"{path} leads through more than {_MOST_LINKS} symbolic links: name the folder itself")
        here = "/" if target.startswith("/") else here
        steps += _steps(target)
    return here


def _steps(path: str) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in {"", "."}]


def _followed(path: str) -> str:
    """Where the link there leads; empty if there is none."""
    try:
        found = os.lstat(path)
        target = os.readlink(path) if stat.S_ISLNK(found.st_mode) else ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise FilingError(f"{path} can't be looked at ({error.strerror}): name a folder that can be read") from error
    if target:
        _check_link(path, target, found.st_uid)
    return target


def _check_link(path: str, target: str, uid: int) -> None:
    """Root follows what only root can have made. Other callers have no more rights than who made their links."""
    caller, mend = os.geteuid(), "name what it leads to, or put that in its place"
    if uid not in {0, caller}:
        raise FilingError(f"{path} belongs to uid {uid} and is a link to {target}, which is not followed: {mend}")
    if caller != 0:
        return
    try:
        check_folders(path)
    except FilingError as error:
        reason = str(error).rpartition(": ")[0]
        raise FilingError(f"{path} is a link to {target}, which root doesn't follow, since {reason}: {mend}") from error


@contextlib.contextmanager
def inside(folder: str) -> Iterator[None]:
    """Work in that very folder: whoever owns one above could put another one, or a link, in its place."""
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchdir(here)
        finally:
            os.close(here)
        if os.getcwd() != folder:
            raise FilingError(f"{folder} is another one by now: run again")
        yield
    finally:
        os.fchdir(before)
        os.close(before)


def obstacle(path: str) -> str:
    """For what a file there can't be replaced, as far as it can be seen before; empty if there is nothing."""
    if os.statvfs(os.path.dirname(path)).f_flag & os.ST_RDONLY:
        return f"{path} lies on a read-only file system and can't be replaced: mount it writable"
    if _is_mount_point(path):
        return f"{path} is a mount point and can't be replaced: mount the folder instead of the single file"
    return ""


def _is_mount_point(path: str) -> bool:
    """Not ``os.path.ismount``, which doesn't see a file that is mounted from its own file system."""
    try:
        mounts = _MOUNTS.read_bytes().splitlines()
    except FileNotFoundError:  # not Linux, where render_conf may run
        return False
    escaped = "".join(f"\\{ord(each):03o}" if each in " \t\n\\" else each for each in path)
    return os.fsencode(escaped) in {line.split(b" ")[4] for line in mounts}
