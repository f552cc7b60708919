"""Moving an owner into its cgroup, with all its threads and descendants, and out again.

Source: Documentation/admin-guide/cgroup-v2.rst, "Processes": a write to ``cgroup.procs`` moves a process with all its
threads.
"""

from __future__ import annotations

import errno
import os
import time

from flink_gpu_discovery import cgroups
from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.isolation import hierarchies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.host import Deadline, Host
    from flink_gpu_discovery.isolation.hierarchies import Hierarchy
    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.processes import Processes

_MOST_ROUNDS = 50
_MOST_PROCESSES = 4096
_PAUSE_SECONDS = 0.005


class Migration:
    """What was moved in one hierarchy, so that it can be put back where it came from."""

    __slots__ = ("_hierarchy", "_host", "_moved", "_processes")

    def __init__(self, host: Host, hierarchy: Hierarchy, processes: Processes) -> None:
        self._host: Final = host
        self._hierarchy: Final = hierarchy
        self._processes: Final = processes
        self._moved: list[tuple[int, str]] = []

    def gather(self, folder: str, owner: Owner, spared: frozenset[int], deadline: Deadline) -> None:
        """Move ``owner`` and all its descendants but the ``spared`` ones (and those below them) into ``folder``.

        Below an unprivileged owner root's processes stay where they are: they are this program's, in other calls of
        the owner at the same moment, and have left its cgroups for good reason. An unprivileged owner gets no other.
        The owner comes first: what it starts from then on is born inside. It is done when a round finds nobody outside.
        ``SystemRefusedError`` if that doesn't come about.
        """
        for _ in range(_MOST_ROUNDS):
            family = [self._known(owner.pid), *map(self._known, descendants(self._host, owner.pid, spared))]
            if len(family) > _MOST_PROCESSES:
                raise SystemRefusedError(
                    f"{owner} has more than {_MOST_PROCESSES} descendants", "ask before they start"
                )
            outside = [
                (pid, start)
                for pid, start in family
                if self._is_outside(pid, folder) and not self._is_roots(pid, owner)
            ]
            if not outside:
                return
            for pid, start in outside:
                deadline.check(f"while pid {pid} was moved into {folder}")
                self._take(pid, start, folder)
        raise SystemRefusedError(
            f"{owner} starts processes faster than they can be moved into {folder}",
            "call again at a quieter moment",
        )

    def _known(self, pid: int) -> tuple[int, int]:
        """A process with its start time, -1 if it has gone: its PID may be somebody else's in a moment."""
        try:
            return pid, self._processes.stat(str(pid)).start_time
        except (OSError, ValueError):
            return pid, -1

    def _is_roots(self, pid: int, owner: Owner) -> bool:
        if owner.uid == 0:
            return False
        try:
            return set(self._processes.status(pid)[b"Uid"].split()[:3]) == {b"0"}
        except (OSError, KeyError):
            return False

    def _is_outside(self, pid: int, folder: str) -> bool:
        if self._processes.has_ended(pid):
            return False
        try:
            place = hierarchies.folder_of(self._host, self._hierarchy, pid)
        except SystemRefusedError:
            if self._processes.has_ended(pid):
                return False
            raise
        return not f"{place}/".startswith(f"{folder}/")

    def _take(self, pid: int, start: int, folder: str) -> None:
        """Move one process, if it is still the one that was listed; one that isn't goes back where it came from."""
        try:
            origin = hierarchies.folder_of(self._host, self._hierarchy, pid)
        except SystemRefusedError:
            if self._processes.has_ended(pid):
                return
            raise
        if self._known(pid) != (pid, start):
            return
        self._moved.append((pid, origin))
        _move(folder, pid, self._processes)
        if self._known(pid) not in ((pid, start), (pid, -1)):
            self._moved.pop()
            _move(origin, pid, self._processes)

    def undo(self, folder: str) -> None:
        """Put everybody back; who was born inside or moved by an earlier call goes to the cgroup above."""
        origins = dict(reversed(self._moved))
        empty(folder, self._processes, origins)


def empty(folder: str, processes: Processes, origins: dict[int, str] | None = None) -> None:
    """Move everybody out of a cgroup: to their ``origins``, or to the cgroup above."""
    above = os.path.dirname(folder)
    for turn in range(_MOST_ROUNDS):
        inside = [pid for pid in cgroups.pids_below(folder) if not processes.has_ended(pid)]
        if not inside:
            return
        if turn:
            time.sleep(_PAUSE_SECONDS)  # whoever was killed in it needs a moment to go
        for pid in inside:
            origin = (origins or {}).get(pid, above)
            _move(origin if origin != folder and os.path.isdir(origin) else above, pid, processes)
    raise SystemRefusedError(f"{folder} doesn't become empty", "end what runs in it")


def descendants(host: Host, pid: int, spared: frozenset[int]) -> list[int]:
    """The children of all its threads, their children and so on, but the ``spared`` ones and those below them."""
    found: list[int] = []
    known = {pid, *spared}
    waiting = [pid]
    while waiting:
        children = [child for child in _children(host, waiting.pop()) if child not in known]
        known.update(children)
        found += children
        waiting += children
    return found


def _children(host: Host, pid: int) -> list[int]:
    """Source: proc_tid_children(5). A thread may end between the listing and the read."""
    children: list[int] = []
    for task in _tasks(host, pid):
        try:
            children += [int(word) for word in read_file(f"{host.proc}/{pid}/task/{task}/children").split()]
        except FileNotFoundError:
            if os.path.exists(f"{host.proc}/self/task/{os.getpid()}/children"):
                continue  # the thread has ended
            raise SystemRefusedError(
                f"{host.proc} doesn't show the children of a process", "use a kernel with CONFIG_PROC_CHILDREN"
            ) from None
        except OSError:
            continue
    return children


def _tasks(host: Host, pid: int) -> list[str]:
    try:
        return os.listdir(f"{host.proc}/{pid}/task")
    except OSError:
        return []  # it has ended


def _move(folder: str, pid: int, processes: Processes) -> None:
    try:
        cgroups.move(pid, folder)
    except OSError as error:
        if error.errno == errno.ESRCH or processes.has_ended(pid):
            return
        raise SystemRefusedError(
            f"the kernel refused to move pid {pid} into {folder}: {error.strerror}",
            "see that the cgroup tree is mounted writable and no process limit stands in the way",
        ) from error
