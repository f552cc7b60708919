"""Control groups: who is in one. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst."""

from __future__ import annotations

import os


def pids_below(folder: str) -> tuple[int, ...]:
    """The processes in the cgroup and all below it; none if it is gone. ``OSError`` if it can't be read."""
    try:
        with open(f"{folder}/cgroup.procs", encoding="ascii") as file:
            pids = [int(line) for line in file]
        children = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return ()
    for child in children:
        pids += pids_below(child)
    return tuple(sorted(set(pids)))
