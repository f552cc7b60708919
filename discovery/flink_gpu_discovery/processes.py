"""Processes: who the owner is, and whether a recorded one is still alive.

Source: proc_pid_stat(5), proc_pid_status(5), kill(2), pid_namespaces(7).
"""

from __future__ import annotations

import os

from flink_gpu_discovery.errors import SystemRefusedError, UsageError
from flink_gpu_discovery.host import Host, read_file
from flink_gpu_discovery.models import Owner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

ALIVE, DEAD, UNPROVABLE = "alive", "dead", "unprovable"
_GONE_STATES = ("Z", "X")


class ProcessStat:
    """The fields of ``/proc/PID/stat`` that matter here; ``start_time`` in clock ticks since boot."""

    __slots__ = ("command", "start_time", "state")

    def __init__(self, *, command: str, state: str, start_time: int) -> None:
        self.command: Final = command
        self.state: Final = state
        self.start_time: Final = start_time


class Processes:
    """The processes of one host, as the PID namespace of this program numbers them."""

    __slots__ = ("_boot_id", "_boottime_offset", "_pid_namespace", "_proc", "_ticks_per_second")

    def __init__(self, host: Host) -> None:
        self._proc: Final = host.proc
        self._ticks_per_second: Final = os.sysconf("SC_CLK_TCK")
        self._boottime_offset: Final = _boottime_offset(host.proc) * self._ticks_per_second
        try:
            self._boot_id: Final = read_file(f"{host.proc}/sys/kernel/random/boot_id").decode("ascii").strip()
            self._pid_namespace: Final = os.stat(f"{host.proc}/self/ns/pid").st_ino
            shown_as = os.readlink(f"{host.proc}/self")
        except (OSError, ValueError) as error:
            raise SystemRefusedError(f"cannot tell processes apart: {error}", f"mount {host.proc}") from error
        if shown_as != str(os.getpid()):
            raise SystemRefusedError(
                f"{host.proc} shows the processes of another PID namespace: this is {os.getpid()} here and"
                f" {shown_as[:20]!r} there",
                f"mount this namespace's own {host.proc} (unshare --mount-proc)",
            )

    def started_at(self) -> float:
        """When this very process started, in seconds on CLOCK_BOOTTIME (10 ms steps)."""
        return self.stat("self").start_time / self._ticks_per_second

    def owner(self, pid: int) -> Owner:
        """The identity of a live process that may own GPUs on this caller's behalf; else ``UsageError``."""
        if pid <= 1:
            raise UsageError(
                f"pid {pid} can't own GPUs: it is what orphans have for a parent",
                "the task executor must live on, and call this program itself; --owner-pid names another",
            )
        try:
            stat = self.stat(str(pid))
            uid = self._real_uid(pid)
        except (OSError, ValueError) as error:
            raise UsageError(f"owner pid {pid} is not a process that can be seen here", "give a live one") from error
        if stat.state in _GONE_STATES and self._every_task_gone(pid):
            raise UsageError(f"owner pid {pid} ({stat.command}) has ended", "give a live one")
        if os.geteuid() not in (0, uid):
            raise UsageError(
                f"owner pid {pid} ({stat.command}) belongs to uid {uid}, the caller to uid {os.geteuid()}",
                "a task executor asks for itself",
            )
        return Owner(
            pid=pid,
            start_time=stat.start_time - self._boottime_offset,
            boot_id=self._boot_id,
            pid_namespace=self._pid_namespace,
            uid=uid,
            command=stat.command,
        )

    def liveness(self, owner: Owner) -> str:
        """``DEAD`` only on proof, ``UNPROVABLE`` (to be treated as alive) where there is none either way."""
        if owner.boot_id != self._boot_id:
            return DEAD
        if owner.pid_namespace != self._pid_namespace:
            return UNPROVABLE
        if self.has_ended(owner.pid):
            return DEAD
        try:
            stat = self.stat(str(owner.pid))
        except (OSError, ValueError):
            return UNPROVABLE  # hidepid=2, or it ends just now
        if stat.start_time - self._boottime_offset != owner.start_time:
            return DEAD
        if stat.state in _GONE_STATES and self._every_task_gone(owner.pid):
            return DEAD
        return ALIVE

    def is_dead(self, owner: Owner) -> bool:
        """Whether it is proven that ``owner`` has ended."""
        return self.liveness(owner) == DEAD

    def has_ended(self, pid: int) -> bool:
        """Whether no process has this PID in our namespace any more."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it exists, under another uid
        return False

    def stat(self, pid: str) -> ProcessStat:
        """Read ``/proc/PID/stat``; ``OSError`` where it can't be read."""
        return _parse_stat(read_file(f"{self._proc}/{pid}/stat"))

    def _real_uid(self, pid: int) -> int:
        for line in read_file(f"{self._proc}/{pid}/status").splitlines():
            if line.startswith(b"Uid:"):
                return int(line.split()[1])
        raise ValueError(f"/proc/{pid}/status has no Uid line")

    def _every_task_gone(self, pid: int) -> bool:
        """Whether all threads have ended: a JVM's main thread may be a zombie while the others work."""
        try:
            tasks = os.listdir(f"{self._proc}/{pid}/task")
            states = [self.stat(f"{pid}/task/{task}").state for task in tasks]
        except (OSError, ValueError):
            return False
        return bool(states) and all([state in _GONE_STATES for state in states])


def _boottime_offset(proc: str) -> int:
    """Seconds by which this process's time namespace shifts CLOCK_BOOTTIME, and with it every start time.

    Without it, one process would have two start times, and the second reader would take it for dead. Source:
    time_namespaces(7); a kernel without them has no such file.
    """
    try:
        for line in read_file(f"{proc}/self/timens_offsets").splitlines():
            clock, seconds, _ = line.split()
            if clock == b"boottime":
                return int(seconds)
    except (OSError, ValueError):
        pass
    return 0


def _parse_stat(content: bytes) -> ProcessStat:
    """The command may hold spaces and parentheses, so the fields after it count from the last ``)``."""
    head, _, tail = content.rpartition(b") ")
    fields = tail.split()
    if len(fields) < 20:
        raise ValueError("a process without a stat line")
    return ProcessStat(
        command=os.fsdecode(head.partition(b"(")[2]),
        state=fields[0].decode("ascii"),
        start_time=int(fields[19]),
    )
