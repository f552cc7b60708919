"""Proof from inside: a child enters the owner's cgroup, takes its uid, and tries.

access(2) consults the device cgroup as open(2) does, without waking a GPU; ``inode_permission`` in ``fs/namei.c`` asks
the file's mode first and the device cgroup second. So the device rules are tried as root, whom modes don't stop, and
once more under the owner's uid; ways out of the cgroup are tried under the owner's uid alone.
"""

from __future__ import annotations

import ctypes
import errno
import os

from flink_gpu_discovery import bounded, cgroups, fields
from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.isolation import bus  # not later: the owner may not be let at the interpreter's files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.host import Host
    from flink_gpu_discovery.isolation.rules import DeviceNode, Rules

_FACCESSAT2 = 439  # Linux 5.8, the same number everywhere: include/uapi/asm-generic/unistd.h
_AT_FDCWD, _AT_EACCESS = -100, 0x200  # include/uapi/linux/fcntl.h
_MOST_SECONDS = 3.0  # the lock is held meanwhile
_DOORS = ("cgroup.procs", "cgroup.threads", "tasks")  # files that a process can be moved through
# The capabilities that open no confinement, by their numbers in include/uapi/linux/capability.h: NET_BIND_SERVICE,
# NET_RAW, IPC_LOCK, SYS_NICE, SYS_RESOURCE, LEASE, SYSLOG.
_HARMLESS = (10, 13, 14, 23, 24, 28, 34)
_KNOWN = {0: "CHOWN", 1: "DAC_OVERRIDE", 5: "KILL", 6: "SETGID", 7: "SETUID", 12: "NET_ADMIN", 19: "SYS_PTRACE"}
_KNOWN.update({21: "SYS_ADMIN", 27: "MKNOD", 31: "SETFCAP", 39: "BPF"})


class Credentials:
    """What the kernel judges the owner by: uid, gid, supplementary groups, permitted capabilities as a bit set."""

    __slots__ = ("capabilities", "gid", "groups", "uid")

    def __init__(self, *, uid: int, gid: int, groups: tuple[int, ...], capabilities: int) -> None:
        self.uid: Final = uid
        self.gid: Final = gid
        self.groups: Final = groups
        self.capabilities: Final = capabilities

    @classmethod
    def of(cls, host: Host, pid: int) -> Credentials:
        """Those of a live process; ``SystemRefusedError`` if they can't be read. Source: proc_pid_status(5)."""
        try:
            lines = read_file(f"{host.proc}/{pid}/status").splitlines()
            values = {name: value.split() for name, _, value in [line.partition(b":") for line in lines]}
            return cls(
                uid=int(values[b"Uid"][0]),
                gid=int(values[b"Gid"][0]),
                groups=tuple([int(group) for group in values[b"Groups"]]),
                capabilities=int(values[b"CapPrm"][0], 16) | int(values[b"CapInh"][0], 16),
            )
        except (OSError, KeyError, ValueError, IndexError) as error:
            raise SystemRefusedError(f"who pid {pid} is can't be told: {error!r}", "see that it is alive") from error


def check_powerless(owner: Credentials) -> None:
    """``SystemRefusedError`` if the owner, not being root, has a capability that may open a confinement."""
    bits = [bit for bit in range(64) if owner.capabilities >> bit & 1 and bit not in _HARMLESS]
    held = [f"CAP_{_KNOWN[bit]}" if bit in _KNOWN else f"capability {bit}" for bit in bits]
    if owner.uid != 0 and held:
        raise SystemRefusedError(
            f"uid {owner.uid} could undo its confinement with {', '.join(held)}",
            "start the task executor without capabilities (AmbientCapabilities=, --cap-drop)",
        )


class Finding:
    """What the child saw: faults of the confinement, and notes that are no reason to refuse it."""

    __slots__ = ("faults", "notes")

    def __init__(self, faults: tuple[str, ...], notes: tuple[str, ...]) -> None:
        self.faults: Final = faults
        self.notes: Final = notes


def examine(
    folder: str, rules: Rules, owner: Credentials, tree: list[str], buses: tuple[str, ...], seconds: float
) -> Finding:
    """Try the rules in the cgroup ``folder``, and under the owner's uid the ways out of it.

    These are the doors of the cgroups in ``tree`` (folders), and systemd's manager on the ``buses`` (sockets).

    ``SystemRefusedError`` if the try itself fails, ``TryAgainError`` if it takes longer than ``seconds``. Root's own
    ways out are not tried: it has them.
    """
    answered = bounded.ask(
        "the proof of confinement", lambda: _try(folder, rules, owner, tree, buses), min(seconds, _MOST_SECONDS)
    )
    lines = [fields.split(line) for line in answered.output.splitlines()]
    if not lines or lines[-1] != ("end",):
        raise SystemRefusedError(
            f"the confinement can't be proven in {folder}: status {answered.status}: {answered.errors.strip()[-200:]}",
            "give it CAP_SETUID and CAP_SETGID (under systemd CAP_SYS_PTRACE, too), and room in the cgroup",
        )
    return Finding(*[tuple([line[1] for line in lines if line[0] == kind]) for kind in ("fault", "note")])


def _try(folder: str, rules: Rules, owner: Credentials, tree: list[str], buses: tuple[str, ...]) -> None:
    """First the doors, from outside: where one is open, the owner could freeze in the cgroup who enters it.

    With root as its real uid this process can't be signalled by the owner.
    """
    if owner.uid != 0:
        sockets = _open_sockets(buses)
        os.setgroups(owner.groups)
        os.setresgid(owner.gid, owner.gid, owner.gid)
        _try_doors(folder, owner.uid, tree)
        for socket in sockets:
            _try_manager(owner.uid, f"/proc/self/fd/{socket}")
        os.setresuid(0, 0, 0)
    cgroups.move(0, folder)
    access = _Access()
    for node in rules.allowed_nodes:
        if access(node.path) == errno.EPERM:
            _say("fault", f"{node.path} is allotted but denied")
    for node in rules.denied_nodes:
        _expect_denied(node, access(node.path), (errno.EPERM,))
    if owner.uid != 0:
        access.become(owner.uid)
        for node in rules.allowed_nodes:
            if access(node.path) == errno.EACCES and access(node.path, os.R_OK) == errno.EACCES:  # MIG's are only read
                _say("note", f"uid {owner.uid} may not open {node.path}, by its mode")
        for node in rules.denied_nodes:
            _expect_denied(node, access(node.path), (errno.EPERM, errno.EACCES))
    _say("end")


def _expect_denied(node: DeviceNode, answer: int, wanted: tuple[int, ...]) -> None:
    if answer == errno.ENOENT:  # it has gone meanwhile
        return
    if answer not in wanted:
        said = os.strerror(answer) if answer else "open"
        _say("fault", f"{node.path} ({node.major}:{node.minor}) should be denied and is not ({said})")


def _try_doors(folder: str, uid: int, tree: list[str]) -> None:
    """No cgroup may take the owner in, nor may the owner make one that would. Opening a door moves nobody."""
    access = _Access()
    access.become(uid)
    door = open_door(tree)
    if door:
        _say("fault", f"uid {uid} may write {door}, and leave its confinement by it")
        return
    for cgroup in tree:
        if not access(cgroup, os.W_OK):
            _say("fault", f"uid {uid} may make cgroups in {cgroup}")
            return
    above = os.path.dirname(folder)
    try:
        os.close(os.open(f"{above}/cgroup.procs", os.O_WRONLY | os.O_CLOEXEC))
    except OSError as error:
        if error.errno != errno.EACCES:
            _say("fault", f"moving to {above} fails with {error.strerror}, not for want of permission")


def open_door(tree: list[str]) -> str:
    """The first file of these cgroups through which this process may move itself; empty if there is none."""
    doors = [f"{cgroup}/{name}" for cgroup in tree for name in _DOORS]
    return next((door for door in doors if _opens(door)), "")


def _opens(door: str) -> bool:
    try:
        os.close(os.open(door, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError:
        return False
    return True


def _open_sockets(paths: tuple[str, ...]) -> list[int]:
    """Those that are there, each once, held while this process is root: the owner may not get at them by path."""
    sockets: dict[tuple[int, int], int] = {}
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            continue
        found = os.fstat(descriptor)
        sockets.setdefault((found.st_dev, found.st_ino), descriptor)
    return list(sockets.values())


def _try_manager(uid: int, socket: str) -> None:
    try:
        ways = bus.ways_out(socket, uid)
    except bus.BusError as error:
        _say("fault", f"whether systemd's manager would move uid {uid}'s processes can't be told: {error}")
        return
    if ways:
        _say("fault", f"uid {uid} may call {ways[0]} of systemd's manager, and leave its confinement by it")


class _Access:
    """access(2) with its errno, which ``os.access`` keeps to itself; 0 if the path may be opened like that.

    glibc before 2.33 would ask for the real uid whatever it is told, so the system call is made without it.
    """

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._flags = 0

    def become(self, uid: int) -> None:
        """Ask as this uid from now on: as the effective one, or where the kernel can't, as the real one."""
        os.setresuid(0, uid, 0)
        self._flags = _AT_EACCESS
        if self("/", os.R_OK) == errno.ENOSYS:
            self._flags = 0
            os.setresuid(0, 0, 0)
            os.setresuid(uid, uid, 0)

    def __call__(self, path: str, mode: int = os.R_OK | os.W_OK) -> int:
        name = os.fsencode(path)
        if self._flags:
            answer = self._libc.syscall(
                ctypes.c_long(_FACCESSAT2), ctypes.c_int(_AT_FDCWD), name, ctypes.c_int(mode), ctypes.c_int(self._flags)
            )
        else:
            answer = self._libc.access(name, mode)
        return ctypes.get_errno() if answer else 0


def _say(*values: str) -> None:
    os.write(1, fields.join(values).encode("ascii") + b"\n")
