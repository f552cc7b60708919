"""The record's place on the host: its file, its lock, and the folder with what was there before."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import urllib.parse
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils import host_files_disk as disk
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import State, look
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_trust import check_folders
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError, Record, parse, render

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LOCK_SECONDS = 10.0
_PAUSE_SECONDS = 0.05


class Store:
    """The record at ``path``, and beside it ``before/`` (0700), whose files have their paths for names."""

    def __init__(self, path: str) -> None:
        if not path.startswith("/") or os.path.normpath(path) != path:
            raise FilingError(f"record: {path!r} is not an absolute path in its plain form")
        self.path = path
        self.folder = Path(path).parent
        self.before = self.folder / "before"
        self._lock = f"{path}.lock"
        self._own = (path, disk.staged(path), self._lock)

    @contextlib.contextmanager
    def locked(self, *, reading: bool, seconds: float = LOCK_SECONDS) -> Iterator[None]:
        """Exclude other runs; whoever only reads makes no lock where there is none."""
        check_folders(self.path)
        descriptor = -1 if reading and not os.path.lexists(self._lock) else self._acquire(seconds)
        try:
            yield
        finally:
            if not (reading or os.path.lexists(self.path)):
                self._remove_lock()
            if descriptor >= 0:
                os.close(descriptor)

    def load(self) -> Record:
        """The record; an empty one where there is none."""
        found = look(self.path)
        if not found.exists:
            return Record()
        if found.content is None or found.uid != 0 or found.mode & 0o022:
            raise FilingError(
                f"the record {self.path} is no file, or others than root may write it (uid {found.uid}, mode"
                f" {found.mode:04o}): find out who changed it, then make it root's and 0600"
            )
        return parse(found.content, self.path)

    def save(self, record: Record) -> None:
        """Write the record; only for the holder of the lock. An empty one goes then, with all that belongs to it."""
        if record != Record() or os.path.lexists(self.path):
            disk.put(self.path, State(render(record), mode=0o600))
        if record == Record():
            self._clear()

    @property
    def has_traces(self) -> bool:
        """Whether anything is there that ``save`` of an empty record would remove."""
        return any(os.path.lexists(path) for path in self._own) or bool(disk.is_empty_folder(self.folder))

    def owns(self, path: str) -> bool:
        """Whether ``path`` is one of the record's own."""
        return path in self._own or self.before in (Path(path), *Path(path).parents)

    def original(self, path: str) -> str:
        """Where what stood at ``path`` before the role is kept."""
        return str(self.before / urllib.parse.quote(path, safe=""))

    def keep_original(self, path: str) -> None:
        """Copy what stands at ``path``, with owner, mode, times and extended attributes."""
        disk.make_folder(self.before, 0o700)
        disk.put(self.original(path), look(path), like=path)

    def unrestored(self) -> list[str]:
        """The originals in ``before/`` that differ from what stands at their paths."""
        return [path for path in self._originals() if not self._is_restored(path)]

    def _is_restored(self, path: str) -> bool:
        try:
            return bool(look(path) == look(self.original(path)))
        except FilingError:
            return False  # a folder, say

    def _originals(self) -> list[str]:
        return [urllib.parse.unquote(kept.name) for kept in self._kept() if kept.name.startswith("%2F")]

    def _kept(self) -> list[Path]:
        return sorted(self.before.iterdir()) if self.before.is_dir() else []

    def _clear(self) -> None:
        """The record goes last, emptied beforehand. An original that isn't restored stays: a lost record's, say."""
        valuable = {self.original(path) for path in self.unrestored()}
        for kept in self._kept():
            if str(kept) not in valuable:
                kept.unlink()
        disk.remove_folder_if_empty(self.before)
        disk.remove(disk.staged(self.path))
        disk.remove(self.path)

    def _remove_lock(self) -> None:
        """Beside no record it guards nothing."""
        disk.remove(self._lock)
        disk.remove_folder_if_empty(self.folder)

    def _acquire(self, seconds: float) -> int:
        """A descriptor of the lock file, locked. One that was removed meanwhile excludes nobody any more."""
        end = time.monotonic() + seconds
        while True:
            with contextlib.suppress(BlockingIOError, FileNotFoundError):
                return self._try_lock()
            if time.monotonic() > end:
                raise FilingError(f"{self._lock} is still locked after {seconds:g} s: let the other run end")
            time.sleep(_PAUSE_SECONDS)

    def _try_lock(self) -> int:
        """``FileNotFoundError`` if a run that removes everything took the file or its folder again."""
        disk.make_folder(self.folder)
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), Path(self._lock).stat()):
                return descriptor
            raise FileNotFoundError(self._lock)
        except BaseException:
            os.close(descriptor)
            raise
