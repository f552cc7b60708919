"""Control groups: who is in one, and how one gets in. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst."""

from __future__ import annotations

import errno
import os


def pids_below(folder: str) -> tuple[int, ...]:
    """The processes in the cgroup and all below it; none if it is gone.

    ``OSError`` if it can't be read, or if no cgroup tree is mounted where it should have been.
    """
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            pids = [int(line) for line in file]
        children = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        _check_tree(folder)
        return ()
    for child in children:
        pids += pids_below(child)
    return tuple(sorted(set(pids)))


def move(pid: int, folder: str) -> None:
    """Move a process with all its threads into the cgroup; 0 is this one. ``OSError`` as the kernel says."""
    descriptor = os.open(f"{folder}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(pid).encode("ascii"))
    finally:
        os.close(descriptor)


def _check_tree(folder: str) -> None:
    """The nearest ancestor that is there must be a cgroup: elsewhere, a missing folder proves nothing."""
    above = os.path.dirname(folder)
    while above != "/" and not os.path.isdir(above):
        above = os.path.dirname(above)
    if not os.path.exists(f"{above}/cgroup.procs"):
        raise OSError(errno.ENOENT, "no cgroup tree is mounted there", folder)
