"""Control groups: who is in one. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst."""

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


def _check_tree(folder: str) -> None:
    """The nearest ancestor that is there must be a cgroup: elsewhere, a missing folder proves nothing."""
    above = os.path.dirname(folder)
    while above != "/" and not os.path.isdir(above):
        above = os.path.dirname(above)
    if not os.path.exists(f"{above}/cgroup.procs"):
        raise OSError(errno.ENOENT, "no cgroup tree is mounted there", folder)
