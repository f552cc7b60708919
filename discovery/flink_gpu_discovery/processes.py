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

    __slots__ = ("command", "parent", "start_time", "state")

    def __init__(self, *, command: str, state: str, parent: int, start_time: int) -> None:
        self.command: Final = command
        self.state: Final = state
        self.parent: Final = parent
        self.start_time: Final = start_time


class Processes:
    """The processes of one host, as the PID namespace of this program numbers them."""

    __slots__ = ("_here", "_proc", "_ticks_per_second")

    def __init__(self, host: Host) -> None:
        self._proc: Final = host.proc
        self._ticks_per_second: Final = os.sysconf("SC_CLK_TCK")
        self._here: _Here | None = None

    def started_at(self, pid: str = "self") -> float:
        """When a process (this very one) started, in seconds on CLOCK_BOOTTIME (10 ms steps)."""
        return self.stat(pid).start_time / self._ticks_per_second

    def owner(self, pid: int) -> Owner:
        """The identity of a live process that may own GPUs on this caller's behalf; else ``UsageError``."""
        if pid <= 1:
            raise UsageError(
                f"pid {pid} can't own GPUs: it is what orphans have for a parent",
                "the task executor must live on, and call this program itself; --owner-pid names another",
            )
        here = self._identify()
        try:
            stat = self.stat(str(pid))
            status = self.status(pid)
            uid, group_leader = int(status[b"Uid"].split()[0]), int(status[b"Tgid"])
        except (OSError, ValueError, KeyError) as error:
            raise UsageError(f"owner pid {pid} is not a process that can be seen here", "give a live one") from error
        if group_leader != pid:
            raise UsageError(f"{pid} is a thread of pid {group_leader}", f"give {group_leader}")
        if self.has_ended(pid):
            raise UsageError(f"owner pid {pid} ({stat.command}) has ended", "give a live one")
        if os.geteuid() not in (0, uid):
            raise UsageError(
                f"owner pid {pid} ({stat.command}) belongs to uid {uid}, the caller to uid {os.geteuid()}",
                "a task executor asks for itself",
            )
        return Owner(
            pid=pid,
            start_time=stat.start_time - here.boottime_offset,
            boot_id=here.boot_id,
            pid_namespace=here.pid_namespace,
            uid=uid,
            command=stat.command,
        )

    def liveness(self, owner: Owner) -> str:
        """``DEAD`` only on proof, ``UNPROVABLE`` (to be treated as alive) where there is none either way."""
        here = self._identify()
        if owner.boot_id != here.boot_id:
            return DEAD
        if owner.pid_namespace != here.pid_namespace:
            return UNPROVABLE
        if self.has_ended(owner.pid):
            return DEAD
        try:
            stat = self.stat(str(owner.pid))
        except (OSError, ValueError):
            return UNPROVABLE  # hidepid=2, or it ends just now
        # Offsets are rounded to ticks; nothing reuses a PID within two of them.
        return ALIVE if abs(stat.start_time - here.boottime_offset - owner.start_time) <= 1 else DEAD

    def is_dead(self, owner: Owner) -> bool:
        """Whether it is proven that ``owner`` has ended."""
        return self.liveness(owner) == DEAD

    def is_alive(self, owner: Owner) -> bool:
        """Whether it is proven that ``owner`` still runs."""
        return self.liveness(owner) == ALIVE

    def has_ended(self, pid: int) -> bool:
        """Whether no process has this PID in our namespace any more, or only a zombie."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # it exists, under another uid
        try:
            return self.stat(str(pid)).state in _GONE_STATES and self._every_task_gone(pid)
        except (OSError, ValueError):
            return False

    def stat(self, pid: str) -> ProcessStat:
        """Read ``/proc/PID/stat``; ``OSError`` where it can't be read."""
        return _parse_stat(read_file(f"{self._proc}/{pid}/stat"))

    def _identify(self) -> _Here:
        if self._here is None:
            self._here = _Here(self._proc, self._ticks_per_second)
        return self._here

    def status(self, pid: int) -> dict[bytes, bytes]:
        """The lines of ``/proc/PID/status`` by their names; ``OSError`` where it can't be read."""
        lines = [line.partition(b":") for line in read_file(f"{self._proc}/{pid}/status").splitlines()]
        return {name: value for name, _, value in lines}

    def _every_task_gone(self, pid: int) -> bool:
        """Whether all threads have ended: a JVM's main thread may be a zombie while the others work."""
        try:
            tasks = os.listdir(f"{self._proc}/{pid}/task")
            states = [self.stat(f"{pid}/task/{task}").state for task in tasks]
        except (OSError, ValueError):
            return False
        return bool(states) and all([state in _GONE_STATES for state in states])


class _Here:
    """What makes PIDs comparable: this boot, this PID namespace, and the clock of this time namespace."""

    __slots__ = ("boot_id", "boottime_offset", "pid_namespace")

    def __init__(self, proc: str, ticks_per_second: int) -> None:
        boot_id = f"{proc}/sys/kernel/random/boot_id"
        try:
            self.boot_id: Final = read_file(boot_id).decode("ascii").strip()
            self.pid_namespace: Final = os.stat(f"{proc}/self/ns/pid").st_ino
            shown_as = os.readlink(f"{proc}/self")
            covered = os.stat(boot_id).st_dev != os.stat(os.path.dirname(boot_id)).st_dev
        except (OSError, ValueError) as error:
            raise SystemRefusedError(f"cannot tell processes apart: {error}", f"mount {proc}") from error
        if shown_as != str(os.getpid()):
            raise SystemRefusedError(
                f"{proc} shows the processes of another PID namespace: this is {os.getpid()} here and"
                f" {shown_as[:20]!r} there",
                f"mount this namespace's own {proc} (unshare --mount-proc)",
            )
        if covered:  # as systemd-nspawn does: the host's owners would look like those of another boot, and ours to it
            raise SystemRefusedError(
                f"{boot_id} is covered by a mount, so owners in and out of this container can't be told apart",
                "coordinate on the host, or run the container without that mount",
            )
        self.boottime_offset: Final = _boottime_offset(proc) * ticks_per_second // 1_000_000_000


def _boottime_offset(proc: str) -> int:
    """Nanoseconds by which this process's time namespace shifts CLOCK_BOOTTIME, and with it every start time.

    Without it, one process would have two start times, and the second reader would take it for dead. Source:
    time_namespaces(7); a kernel without them has no such file.
    """
    try:
        for line in read_file(f"{proc}/self/timens_offsets").splitlines():
            clock, seconds, nanoseconds = line.split()
            if clock == b"boottime":
                return int(seconds) * 1_000_000_000 + int(nanoseconds)
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
        parent=int(fields[1]),
        start_time=int(fields[19]),
    )
