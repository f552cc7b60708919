"""One cgroup by the same name in each hierarchy that the lab's view has."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from tests.isolation.hierarchies import CGROUPS, Hierarchies, View

_REMOVAL_SECONDS = 5.0
# What systemd hands to a unit's user with Delegate=.
_DELEGATED = ("cgroup.procs", "cgroup.threads", "cgroup.subtree_control")


class Cgroup:
    """Its folders: ``v1`` and ``v2`` as the test run reaches them, ``inside_v1`` and ``inside_v2`` as the lab does."""

    def __init__(self, name: str, hierarchies: Hierarchies, view: View) -> None:
        self.name = name
        self._hierarchies = hierarchies
        self._view: View = view
        self.v1 = hierarchies.v1 / name if hierarchies.v1 else None
        self.v2 = hierarchies.v2 / name if hierarchies.v2 else None
        for folder in self.folders:
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that the view has, v1 first."""
        return tuple(folder for folder in (self.v1, self.v2) if folder)

    @property
    def inside_v1(self) -> str:
        """The ``devices`` folder in the lab; fails where the view has none."""
        return str(_there(self.v1))

    @property
    def inside_v2(self) -> str:
        """The cgroup v2 folder in the lab; fails where the view has none."""
        folder = str(_there(self.v2))
        return f"{CGROUPS}/{self.name}" if self._view == "v2" else folder

    def child(self, name: str) -> Cgroup:
        """A cgroup below."""
        return Cgroup(f"{self.name}/{name}", self._hierarchies, self._view)

    def join(self, pid: int) -> None:
        """Move a process here, with all its threads."""
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(f"{pid}\n", encoding="ascii")

    def pids(self) -> set[int]:
        """The processes here and below, in any hierarchy; zombies are not told of."""
        return {pid for folder in self.folders for below in _tree(folder) for pid in _pids(below)}

    def chown(self, uid: int) -> None:
        """Hand it to a user as systemd's ``Delegate=`` does; v1 stays root's, as it does there."""
        folder = _there(self.v2)
        for path in (folder, *(folder / name for name in _DELEGATED)):
            os.chown(path, uid, uid)

    def limit_v1(self, *rules: str) -> None:
        """Deny, say ``c 195:0 rwm``."""
        for rule in rules:
            (_there(self.v1) / "devices.deny").write_text(rule, encoding="ascii")

    def allow_list_v1(self, rules: Iterable[str]) -> None:
        """Deny everything but these, as a container or ``DevicePolicy=closed`` does."""
        self.limit_v1("a")
        for rule in rules:
            (_there(self.v1) / "devices.allow").write_text(rule, encoding="ascii")

    def devices_v1(self) -> list[str]:
        """The lines of ``devices.list``."""
        return (_there(self.v1) / "devices.list").read_text(encoding="ascii").splitlines()

    def make_threaded(self) -> None:
        """Turn the v2 cgroup into one of threads, in which processes can't be told apart."""
        (_there(self.v2) / "cgroup.type").write_text("threaded", encoding="ascii")

    def remove(self) -> None:
        """Remove it and all below; ``OSError`` if it stays busy. A killed process leaves it a moment later."""
        for folder in self.folders:
            for below in reversed(_tree(folder)):
                _remove(below)


def membership(pid: int) -> dict[str, str]:
    """Where a process is, by controllers as ``/proc/PID/cgroup`` names them: ``devices``, or nothing for v2."""
    lines = Path(f"/proc/{pid}/cgroup").read_text(encoding="utf-8").splitlines()
    return {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}


def _there(folder: Path | None) -> Path:
    assert folder is not None, "the lab's view does not have this hierarchy"
    return folder


def _tree(folder: Path) -> list[Path]:
    """Parents before children."""
    return [Path(path) for path, _, _ in os.walk(folder)]


def _pids(folder: Path) -> list[int]:
    """A threaded cgroup refuses to tell of processes; theirs are told of by its domain above."""
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text(encoding="ascii").split()]
    except OSError:
        return []


def _remove(folder: Path) -> None:
    end = time.monotonic() + _REMOVAL_SECONDS
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.005)
        else:
            return
