"""Where the cgroup hierarchies are mounted, and where in them a process is.

Sources: cgroups(7), proc_pid_mountinfo(5), Documentation/admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

import os

from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.host import Host, read_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

V2 = "0"  # how /proc/PID/cgroup calls it
_PROCS = "cgroup.procs"
_LARGEST_TABLE = 64 * 1024 * 1024
_GONE_STATES = (b"Z", b"X")


class Hierarchy:
    """One mounted hierarchy: its ``controllers`` (none: version 2), where, and which of its cgroups that shows."""

    __slots__ = ("controllers", "mount_point", "root")

    def __init__(self, controllers: tuple[str, ...], mount_point: str, root: str) -> None:
        self.controllers: Final = controllers
        self.mount_point: Final = mount_point
        self.root: Final = root

    @property
    def is_v2(self) -> bool:
        """Whether it is the unified hierarchy."""
        return not self.controllers

    def folder(self, cgroup: str) -> str:
        """The folder of a cgroup as ``/proc/PID/cgroup`` names it; ``SystemRefusedError`` if it can't be seen here."""
        below = cgroup if self.root == "/" else cgroup.removeprefix(self.root)
        hidden = self.root not in ("/", cgroup) and not cgroup.startswith(f"{self.root}/")
        if hidden or cgroup.startswith("/..") or cgroup.endswith(" (deleted)") or not cgroup.startswith("/"):
            raise SystemRefusedError(
                f"the cgroup {cgroup} is not visible below {self.mount_point}",
                "run where the task executor's cgroup can be seen (the host's cgroup namespace)",
            )
        return f"{self.mount_point}{below}".rstrip("/")


def mounted(host: Host) -> tuple[Hierarchy, ...]:
    """The hierarchies, each once: where it is mounted several times, as wide and as writable as can be had."""
    best: dict[tuple[str, ...], tuple[tuple[bool, int], Hierarchy]] = {}
    table = read_file(f"{host.proc}/self/mountinfo", _LARGEST_TABLE)
    for line in table.decode("utf-8", "surrogateescape").splitlines():
        before, _, after = line.partition(" - ")
        fields, (kind, _, options) = before.split(" "), after.split(" ", 2)
        if kind not in ("cgroup", "cgroup2"):
            continue
        hierarchy = Hierarchy(_controllers(kind, options), _unescape(fields[4]), _unescape(fields[3]))
        rank = ("ro" in fields[5].split(","), len(hierarchy.root))
        known = best.get(hierarchy.controllers)
        if (known is None or rank < known[0]) and os.path.exists(f"{hierarchy.mount_point}/{_PROCS}"):
            best[hierarchy.controllers] = (rank, hierarchy)
    return tuple([hierarchy for _, hierarchy in best.values()])


def _controllers(kind: str, options: str) -> tuple[str, ...]:
    if kind == "cgroup2":
        return ()
    flags = ("rw", "ro", "clone_children", "noprefix", "xattr", "cpuset_v2_mode", "favordynmods")
    return tuple(
        sorted(
            [word for word in options.split(",") if (word not in flags and "=" not in word) or word.startswith("name=")]
        )
    )


def _unescape(text: str) -> str:
    """Blanks and the like are written in octal, after a backslash."""
    head, *rest = text.split("\\")
    return head + "".join([chr(int(piece[:3], 8)) + piece[3:] for piece in rest])


def membership(host: Host, pid: int | str) -> dict[tuple[str, ...], str]:
    """The cgroup of a process in each hierarchy, by the hierarchy's controllers; ``OSError`` if it is gone."""
    found = {}
    content = read_file(f"{host.proc}/{_living_task(host, pid)}/cgroup")
    for line in content.decode("utf-8", "surrogateescape").splitlines():
        number, names, cgroup = line.split(":", 2)
        controllers = () if number == V2 else tuple(sorted(names.split(",")))
        found[controllers] = cgroup
    return found


def folder_of(host: Host, hierarchy: Hierarchy, pid: int) -> str:
    """The folder of the cgroup that a process is in; ``SystemRefusedError`` if that can't be told."""
    try:
        cgroup = membership(host, pid)[hierarchy.controllers]
    except (OSError, KeyError, ValueError) as error:
        raise SystemRefusedError(f"the cgroup of pid {pid} can't be told: {error!r}", "see that it is alive") from error
    return hierarchy.folder(cgroup)


def _living_task(host: Host, pid: int | str) -> str:
    """The process, or a thread of it that lives where its main thread has ended: that one moves no more.

    Of such a main thread ``/proc/PID/cgroup`` shows version 2's cgroup of its end, and version 1's root.
    """
    if _state(host, str(pid)) in _GONE_STATES:
        for task in os.listdir(f"{host.proc}/{pid}/task"):
            if _state(host, f"{pid}/task/{task}") not in (*_GONE_STATES, b""):
                return f"{pid}/task/{task}"
    return str(pid)


def _state(host: Host, task: str) -> bytes:
    """As in proc_pid_stat(5); nothing if it can't be read."""
    try:
        return read_file(f"{host.proc}/{task}/stat").rpartition(b") ")[2][:1]
    except OSError:
        return b""


def ancestry(top: str, folder: str) -> list[str]:
    """The folders of a cgroup and of those above it, itself first, up to ``top``."""
    folders = [folder]
    while folders[-1] != top and folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))
    return folders


def tree(top: str) -> list[str]:
    """All cgroups' folders from ``top`` downwards, itself first; those that vanish meanwhile are left out."""
    folders = [top]
    for folder in folders:
        try:
            folders += [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
    return folders
