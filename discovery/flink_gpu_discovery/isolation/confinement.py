"""One owner's confinement: its cgroup, made below the one that the owner is in, with the rules that hold there."""

from __future__ import annotations

import os

from flink_gpu_discovery import cgroups
from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.isolation import hierarchies, migration
from flink_gpu_discovery.isolation.proof import Credentials, check_powerless, examine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.host import Deadline, Host
    from flink_gpu_discovery.isolation.hierarchies import Hierarchy
    from flink_gpu_discovery.isolation.rules import Rules
    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.processes import Processes

PREFIX = "flink-gpu-"


def name_of(owner: Owner) -> str:
    """The name of an owner's cgroup."""
    return f"{PREFIX}{owner.pid}-{owner.start_time}"


def is_name(name: str) -> bool:
    """Whether a cgroup's name is one that ``name_of`` gives."""
    pid, _, start_time = name.removeprefix(PREFIX).partition("-")
    return name.startswith(PREFIX) and pid.isdigit() and start_time.isdigit()


class Confinement:
    """The cgroup at ``folder``, whether or not it is there yet."""

    __slots__ = ("_hierarchy", "_host", "_made", "_migration", "_processes", "folder")

    def __init__(self, host: Host, processes: Processes, hierarchy: Hierarchy, folder: str) -> None:
        self.folder: Final = folder
        self._host: Final = host
        self._processes: Final = processes
        self._hierarchy: Final = hierarchy
        self._migration: Final = migration.Migration(host, hierarchy, processes)
        self._made = False

    def exists(self) -> bool:
        """Whether the cgroup is there."""
        try:
            os.stat(self.folder)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unknown(error) from error
        return True

    def is_empty(self) -> bool:
        """Whether nothing runs in it, or it isn't there."""
        try:
            return not cgroups.pids_below(self.folder)
        except OSError as error:
            raise self._unknown(error) from error

    def make(self) -> None:
        """Make the cgroup if it isn't there; root's, as everything in it."""
        if self.exists():
            if not self.is_empty():
                return
            self.remove()  # who knows who made it
        self._made = True  # before it is, so that an interruption in between leaves nothing behind
        try:
            os.mkdir(self.folder, 0o755)
        except OSError as error:
            self._made = False  # what is there all the same isn't ours to undo
            raise SystemRefusedError(
                f"cannot make the cgroup {self.folder}: {error.strerror}",
                "see that the cgroup tree is mounted writable, and cgroup.max.descendants of those above",
            ) from error

    def enforce(self, rules: Rules) -> None:
        """Let exactly ``rules`` hold for all that runs in it."""
        if self._hierarchy.is_v2:
            from flink_gpu_discovery.isolation import v2

            v2.enforce(self.folder, rules)
        else:
            from flink_gpu_discovery.isolation import v1

            v1.enforce(self.folder, rules)

    def admit(self, owner: Owner, spared: frozenset[int], deadline: Deadline) -> None:
        """Move the owner in, with all threads and descendants, but the ``spared`` processes and those below them."""
        self._migration.gather(self.folder, owner, spared, deadline)

    def prove(self, owner: Owner, rules: Rules, seconds: float) -> tuple[str, ...]:
        """Try from inside that the rules hold and that the owner can't leave; returns notes for people."""
        faults, notes = self.examine(owner, rules, seconds)
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise SystemRefusedError(f"the confinement of {owner} doesn't hold: {faults[0]}{more}", _mend(faults[0]))
        return notes

    def examine(self, owner: Owner, rules: Rules, seconds: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """What is wrong with the confinement of a live owner (nothing: it holds), and notes."""
        who = Credentials.of(self._host, owner.pid)
        check_powerless(who)
        seen = examine(self.folder, rules, who, self._doors(), self._buses(), seconds)
        outside = [] if self.holds(owner) else [f"{owner} is not in {self.folder}"]
        notes = [f"{owner} runs as root, which can leave any confinement"] if who.uid == 0 else []
        return (*outside, *seen.faults), (*notes, *seen.notes)

    def _doors(self) -> list[str]:
        """The cgroups into which a process of this one could move itself if it may write their files.

        On v2 that takes permission on the common ancestor, which is one of those above; on v1 it doesn't.
        """
        if self._hierarchy.is_v2:
            return hierarchies.ancestry(self._hierarchy.mount_point, self.folder)
        return hierarchies.tree(self._hierarchy.mount_point)

    def _buses(self) -> tuple[str, ...]:
        """The system bus as this process sees it, and as systemd does: a unit may hide it from its own processes."""
        socket = f"{self._host.run}/dbus/system_bus_socket"
        if read_file(f"{self._host.proc}/1/comm") != b"systemd\n":
            return (socket,)
        return socket, f"{self._host.proc}/1/root{socket}"

    def holds(self, owner: Owner) -> bool:
        """Whether the owner is in it."""
        return hierarchies.folder_of(self._host, self._hierarchy, owner.pid) == self.folder

    def withdraw(self) -> bool:
        """If this call made the cgroup: put everybody back where it was, and remove it; whether it did."""
        if self._made and self.exists():
            self._migration.undo(self.folder)
            self.remove()
        return self._made

    def dissolve(self) -> None:
        """Move everybody to the cgroup above, and remove this one."""
        if self.exists():
            migration.empty(self.folder, self._processes)
            self.remove()

    def _unknown(self, error: OSError) -> SystemRefusedError:
        return SystemRefusedError(f"the cgroup {self.folder} can't be looked at: {error.strerror}", "see 'dmesg'")

    def remove(self) -> None:
        """Remove the cgroup, which must be empty."""
        try:
            os.rmdir(self.folder)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise SystemRefusedError(
                f"cannot remove the cgroup {self.folder}: {error.strerror}", "end what runs in it, then 'reclaim'"
            ) from error


def _mend(fault: str) -> str:
    if "allotted but denied" in fault:
        return "a cgroup above denies it: DeviceAllow=char-nvidia and DeviceAllow=char-drm (with 'rw') on its unit"
    if "systemd's manager" in fault:
        return "install the D-Bus policy of docs/security.md for this user"
    if "leave its confinement" in fault or "make cgroups" in fault:
        return "no Delegate= for its unit or those above, and no user manager around it"
    return "see 'dmesg' and docs/security.md"
