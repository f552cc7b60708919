"""Who calls: the task executor that Flink's call comes from, and the chain of processes between it and this program."""

from __future__ import annotations

import os
import stat

from flink_gpu_discovery.errors import PermissionRefusedError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from flink_gpu_discovery.host import Host
    from flink_gpu_discovery.processes import Processes

SUDO = "/usr/bin/sudo"
_MOST_SUDOS = 2  # with a terminal and use_pty there is a monitor between sudo and the program


class Caller:
    """The ``owner_pid``, and the ``chain`` between it and this program, this program first.

    ``named``: the owner was named by an option, so no chain leads to it. ``uid``: whose processes the owner must
    be one of (None: the kernel's own rules suffice).
    """

    __slots__ = ("_processes", "_starts", "chain", "named", "owner_pid", "uid")

    def __init__(
        self,
        processes: Processes,
        owner_pid: int,
        chain: tuple[int, ...],
        *,
        named: bool = False,
        uid: int | None = None,
    ) -> None:
        self.owner_pid: Final = owner_pid
        self.chain: Final = chain
        self.named: Final = named
        self.uid: Final = uid
        self._processes: Final = processes
        self._starts: Final = [processes.stat(str(pid)).start_time for pid in chain[1:]]

    @property
    def first(self) -> str:
        """The process that Flink started, as ``/proc`` names it: the chain's other end."""
        return str(self.chain[-1]) if len(self.chain) > 1 else "self"

    def check(self) -> None:
        """``UsageError`` if the chain no longer leads to the owner: an orphan's parent is somebody else."""
        if self.named:
            return
        try:
            stands = self._parents() == [*self.chain[1:], self.owner_pid]
        except (OSError, ValueError):
            stands = False
        if not stands:
            raise UsageError(f"the caller, pid {self.owner_pid}, has ended meanwhile", "nothing was recorded")

    def _parents(self) -> list[int]:
        parents = [os.getppid()]
        for pid, start in zip(self.chain[1:], self._starts):
            now = self._processes.stat(str(pid))
            if now.start_time != start:
                return []
            parents.append(now.parent)
        return parents


def direct(processes: Processes, named: int = 0) -> Caller:
    """The parent is the owner, unless one is named."""
    return Caller(processes, named or os.getppid(), (os.getpid(),), named=bool(named))


def through_sudo(host: Host, processes: Processes, environment: Mapping[str, str], *, same_user: bool = True) -> Caller:
    """The nearest ancestor that is not sudo; with ``same_user`` it must belong to the user that called sudo.

    sudo is known by what it is: the file behind ``/proc/PID/exe`` is the system's sudo, it runs as root, and its real
    uid is the caller's. A process may call itself anything. Without sudo, when root calls, the parent is the owner.
    """
    uid = _calling_uid(environment)
    chain, pid = [os.getpid()], os.getppid()
    while len(chain) <= _MOST_SUDOS and _is_sudo(host, processes, pid, uid):
        chain.append(pid)
        pid = processes.stat(str(pid)).parent
    return Caller(processes, pid, tuple(chain), uid=uid if same_user else None)


def _calling_uid(environment: Mapping[str, str]) -> int:
    """SUDO_UID, which sudo itself sets; root's own call needs none."""
    text = environment.get("SUDO_UID", "0")
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise PermissionRefusedError(f"SUDO_UID is {text[:20]!r}", "call it through sudo, or as root")
    return int(text)


def _is_sudo(host: Host, processes: Processes, pid: int, uid: int) -> bool:
    try:
        program, system = os.stat(f"{host.proc}/{pid}/exe"), os.stat(SUDO)
        real, effective = [int(word) for word in processes.status(pid)[b"Uid"].split()[:2]]
    except (OSError, ValueError, KeyError):
        return False
    is_the_systems = (program.st_dev, program.st_ino) == (system.st_dev, system.st_ino)
    return (
        is_the_systems and system.st_uid == 0 and bool(system.st_mode & stat.S_ISUID) and (effective, real) == (0, uid)
    )
