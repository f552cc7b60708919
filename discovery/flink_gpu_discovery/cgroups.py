"""Control groups: who is in one, and how one gets in. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst."""

from __future__ import annotations

import errno
import os


def pids_below(folder: str) -> tuple[int, ...]:
    """The processes in the cgroup and all below it; none if it is gone.

    ``OSError`` if it can't be read, or if no cgroup tree is mounted where it should have been.
    """
    try:
        pids = _with_a_thread_in(folder, _numbers(f"{folder}/cgroup.procs"))
        children = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        _check_tree(folder)
        return ()
    for child in children:
        pids += pids_below(child)
    return tuple(sorted(set(pids)))


def _with_a_thread_in(folder: str, listed: list[int]) -> list[int]:
    """The processes of which a thread lives in the cgroup.

    On version 2 ``cgroup.procs`` tells of one whose main thread has ended only where that ended, wherever the others
    are (``css_task_iter_advance`` in kernel/cgroup/cgroup.c); threads are listed where they are, by both versions.
    """
    try:
        threads = {*_numbers(f"{folder}/cgroup.threads")}
    except FileNotFoundError:
        return listed  # version 1, where cgroup.procs is made from the threads
    leaders = [pid for pid in listed if pid in threads]
    rest = threads.difference(leaders)
    for pid in leaders:
        if rest:
            rest.difference_update(_threads_of(pid))
    return leaders + [pid for pid in [_process_of(thread) for thread in rest] if pid]


def _threads_of(pid: int) -> list[int]:
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def _process_of(thread: int) -> int:
    """0 if it has ended. Source: proc_pid_status(5)."""
    try:
        with open(f"/proc/{thread}/status", "rb") as file:
            return next((int(line.split()[1]) for line in file if line.startswith(b"Tgid:")), 0)
    except OSError:
        return 0


def _numbers(path: str) -> list[int]:
    with open(path, encoding="ascii") as file:
        return [int(line) for line in file]


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
