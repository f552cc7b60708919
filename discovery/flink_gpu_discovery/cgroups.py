"""Control groups: who is in one, and how one gets in. Source: cgroups(7), Documentation/admin-guide/cgroup-v2.rst."""

from __future__ import annotations

import errno
import os

from flink_gpu_discovery.host import read_file

_LARGEST_LIST = 16 * 1024 * 1024


def pids_below(folder: str) -> tuple[int, ...]:
    """The processes in the cgroup and all below it; none if it is gone.

    ``OSError`` if it can't be read, or if no cgroup tree is mounted where it should have been.
    """
    pids: set[int] = set()
    folders = [folder]
    for place in folders:  # no recursion: who may make cgroups may make them as deep as it likes
        try:
            pids.update(_with_a_thread_in(place, _numbers(f"{place}/cgroup.procs")))
            folders += [entry.path for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENODEV):  # ENODEV: it went between open(2) and read(2)
                raise
            if place == folder:
                _check_tree(folder)
    return tuple(sorted(pids))


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
    try:
        return [int(word) for word in read_file(path, _LARGEST_LIST, os.O_NOFOLLOW | os.O_NONBLOCK).split()]
    except ValueError:
        raise OSError(errno.EINVAL, "it is no cgroup's", path) from None


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
