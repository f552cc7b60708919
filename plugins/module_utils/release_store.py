"""The releases of a host: their folder, and the link ``current`` to the one in use.

The link's text also says how that one was made current, so that both change at once: ``releases/NAME`` by an
installation, ``./releases/NAME`` by rolling back.

When a release was last made current is the mtime of its MANIFEST, 0 if it never was: unlike a folder's it survives
mending. It is kept greater than those of all others, so that a clock set back doesn't change the order.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import contextmanager
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_trust import check_all
from ansible_collections.flinkops.gpu.plugins.module_utils.release_files import FOLDER_MODE, opened, remove, sync
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import MANIFEST, ReleaseError, is_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NEW, OLD = ".new-", ".old-"  # what is not whole yet, or no more; nothing but leftovers once no run is under way
_ROLLED_BACK = "./"
LOCK_SECONDS = 60


class Store:
    """``root/releases`` and ``root/current``; reads anew on each call."""

    def __init__(self, root: str) -> None:
        if not root.startswith("/") or os.path.normpath(root) != root or root == "/":
            raise ReleaseError(f"root: {root!r} is not the absolute path of a folder of its own, such as /opt/NAME")
        self.root = Path(root)
        self.releases = self.root / "releases"
        self.link = self.root / "current"

    @contextmanager
    def locked(self, seconds: float = LOCK_SECONDS) -> Iterator[int]:
        """Keep other runs away; gives the lock's descriptor.

        It is on the folder above, which this module neither makes nor removes.
        """
        deadline = time.monotonic() + seconds
        with opened(self.root.parent.resolve()) as descriptor:
            while not _try_lock(descriptor):
                if time.monotonic() > deadline:
                    raise ReleaseError(f"another run has held {self.root} for {seconds:g} s: try again later")
                time.sleep(0.1)
            yield descriptor

    def require_parent(self) -> None:
        """See that the folder above is there."""
        if not self.root.parent.is_dir():
            raise ReleaseError(f"the folder {self.root.parent} doesn't exist: make it, or choose another root")

    def require_trusted(self) -> None:
        """See that what root will run from here can be put here by root only: else ``FilingError``."""
        for folder in (self.root, self.releases):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                raise ReleaseError(f"{folder} is not a folder (root runs code from there): move it away")
        check_all(str(self.releases))
        if not self.link.is_symlink() and self.link.exists():
            raise ReleaseError(f"{self.link} is not a symbolic link: move it away")

    def closed_folders(self) -> list[Path]:
        """Those of the two that are missing, or not open to all for reading."""
        return [folder for folder in (self.root, self.releases) if not _is_open(folder)]

    def target(self) -> str:
        """The text of ``current``; '' if it doesn't exist."""
        return os.readlink(self.link) if self.link.is_symlink() else ""  # a Path would tidy it

    def current(self) -> str:
        """The name of the release in use; '' if there is none."""
        name = self.target().rpartition("/")[2]
        leads_there = self.target() in (self.target_for(name, rolled_back=way) for way in (False, True))
        return name if leads_there and is_name(name) else ""

    def rolled_back(self) -> bool:
        """Whether the release in use was rolled back to, and none was installed since."""
        return bool(self.current()) and self.target().startswith(_ROLLED_BACK)

    def target_for(self, name: str, *, rolled_back: bool) -> str:
        """The text of ``current`` for that release."""
        return f"{_ROLLED_BACK if rolled_back else ''}{self.releases.name}/{name}"

    def names(self) -> list[str]:
        """All releases, most recently used first."""
        current = self.current()
        return sorted(self._folders(), key=lambda name: (name == current, self.used(name), name), reverse=True)

    def _folders(self) -> list[str]:
        paths = [self.releases / name for name in self._entries() if is_name(name)]
        return [path.name for path in paths if path.is_dir() and not path.is_symlink()]

    def _entries(self) -> list[str]:
        return sorted(os.listdir(self.releases)) if self.releases.is_dir() else []

    def leftovers(self) -> list[Path]:
        """What interrupted runs left behind."""
        return [self.releases / name for name in self._entries() if name.startswith((NEW, OLD))]

    def used(self, name: str) -> int:
        """When that release was last made current, in nanoseconds since 1970; 0 if it never was."""
        manifest: Path = self.releases / name / MANIFEST
        try:
            return manifest.lstat().st_mtime_ns
        except OSError:
            return 0

    def is_latest(self, name: str) -> bool:
        """Whether it is noted that no other release was made current after that one."""
        names = self.names()
        return name in names and self.used(name) > max(
            (self.used(other) for other in names if other != name), default=0
        )

    def switch(self, name: str, *, rolled_back: bool) -> None:
        """Make that release the current one, at once."""
        if self.current() in self.names() and not self.is_latest(self.current()):
            self.note_use(self.current())  # a run was interrupted before it had
        beside = self.releases / f"{NEW}current"
        remove(beside)
        beside.symlink_to(self.target_for(name, rolled_back=rolled_back))
        beside.replace(self.link)
        sync(self.root)
        self.note_use(name)

    def note_use(self, name: str) -> None:
        """Write down that this release was made current last."""
        latest = max((self.used(other) for other in self.names()), default=0)
        now = max(time.time_ns(), latest + 1)
        os.utime(self.releases / name / MANIFEST, ns=(now, now))
        sync(self.releases / name / MANIFEST)

    def discard(self, path: Path) -> None:
        """Remove a release, or what stands in its place; it stops being one before its first file goes."""
        beside = self.releases / f"{OLD}{path.name}"
        remove(beside)
        path.rename(beside)
        sync(self.releases)
        remove(beside)


def _is_open(folder: Path) -> bool:
    return folder.is_dir() and folder.stat().st_mode & FOLDER_MODE == FOLDER_MODE


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
