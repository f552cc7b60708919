"""Leave the caller's cgroups: in them it could freeze or kill this program, and hide GPUs from it."""

from __future__ import annotations

import _thread
import os
import time

from flink_gpu_discovery import cgroups
from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.isolation import hierarchies

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.host import Host
    from flink_gpu_discovery.isolation.hierarchies import Hierarchy

# Where the top of a version 2 tree takes no process, since it hands controllers down (a container's top).
_SHELTER = "flink-gpu-discovery"
_OPEN_FILES = 7  # RLIMIT_NOFILE: infinity is more than the kernel allows
_USUAL_LIMITS = {_OPEN_FILES: 1024}


def leave_cgroups(host: Host) -> None:
    """Move this process to the top of every mounted hierarchy; ``SystemRefusedError`` if it can't."""
    leaving = Leaving(host)
    leaving.start()
    leaving.finish()


def is_out(host: Host) -> bool:
    """Whether this process is (still) at the top of every hierarchy, or in its shelter."""
    return not _ahead(host)


class Leaving:
    """Leave them while something else is done that starts no child: importing, say.

    The first move of a process between cgroups takes a grace period of the kernel, several milliseconds of waiting.
    """

    __slots__ = ("_ahead", "_done", "_error", "_thread")

    def __init__(self, host: Host) -> None:
        self._ahead: Final = _ahead(host)
        self._done: Final = _thread.allocate_lock()
        self._error: BaseException | None = None
        self._thread = 0

    def start(self) -> None:
        """Begin, in a thread; where there is nothing to leave, without one."""
        if self._ahead:
            self._done.acquire()
            _thread.start_new_thread(self._leave, ())
            time.sleep(0.0001)  # lets the thread get as far as to its first wait

    def finish(self) -> None:
        """Wait until it is done; ``SystemRefusedError`` if it can't be.

        Also until the thread has ended: for that it loads a library, through a descriptor that may not be closed.
        """
        self._done.acquire()
        while self._thread and _lives(self._thread):
            time.sleep(0.00005)
        if self._error is not None:
            raise self._error

    def _leave(self) -> None:
        try:
            self._thread = _thread.get_native_id()
            for hierarchy in self._ahead:
                _enter(hierarchy)
        except BaseException as error:  # told by the main thread
            self._error = error
        finally:
            self._done.release()


def _lives(thread: int) -> bool:
    try:
        os.sched_getaffinity(thread)
    except ProcessLookupError:
        return False
    return True


def _ahead(host: Host) -> list[Hierarchy]:
    """The hierarchies in which this process is elsewhere."""
    present = hierarchies.membership(host, "self")
    return [
        hierarchy
        for hierarchy in hierarchies.mounted(host)
        if present.get(hierarchy.controllers, hierarchy.root) not in (hierarchy.root, _shelter(hierarchy))
    ]


def _shelter(hierarchy: Hierarchy) -> str:
    return f"{hierarchy.root.rstrip('/')}/{_SHELTER}" if hierarchy.is_v2 else ""


def _enter(hierarchy: Hierarchy) -> None:
    try:
        cgroups.move(0, hierarchy.mount_point)
    except OSError as error:
        if not hierarchy.is_v2 or not _took_shelter(hierarchy):
            raise SystemRefusedError(
                f"cannot leave the caller's cgroup for {hierarchy.mount_point}: {error.strerror}",
                "see that the cgroup trees are mounted writable (ProtectControlGroups=no in the unit)",
            ) from error


def _took_shelter(hierarchy: Hierarchy) -> bool:
    shelter = f"{hierarchy.mount_point}/{_SHELTER}"
    try:
        try:
            os.mkdir(shelter, 0o755)
        except FileExistsError:
            pass
        cgroups.move(0, shelter)
    except OSError:
        return False
    return True


def reset_process() -> None:
    """Undo what this process inherited and what could starve it, as far as the kernel lets it.

    Limits, nice value, scheduling, processors, out-of-memory score, working folder, and descriptors above 2.
    """
    os.chdir("/")
    os.closerange(3, 1024)
    for act in (_usual_slack, _raise_limits, _be_scheduled_as_usual, _score_as_usual):
        try:
            act()
        except OSError:
            continue  # without the capability for it, this one works under the caller's limits


def _usual_slack() -> None:
    with open("/proc/self/timerslack_ns", "w", encoding="ascii") as file:
        file.write("50000")


def _raise_limits() -> None:
    import resource

    names = [name for name in dir(resource) if name.startswith("RLIMIT_") and name != "RLIMIT_CORE"]
    for number in {int(getattr(resource, name)) for name in names}:
        _, hard = resource.getrlimit(number)
        try:
            resource.setrlimit(number, (_USUAL_LIMITS.get(number, resource.RLIM_INFINITY),) * 2)
        except (OSError, ValueError):
            resource.setrlimit(number, (hard, hard))  # lowered by the caller for good


def _be_scheduled_as_usual() -> None:
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    os.setpriority(os.PRIO_PROCESS, 0, 0)


def _score_as_usual() -> None:
    with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("0")
