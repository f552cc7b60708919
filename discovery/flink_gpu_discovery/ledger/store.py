"""The ledger of a host: read by anybody at any time, changed under its lock only."""

from __future__ import annotations

import os

from flink_gpu_discovery.errors import LedgerDamagedError
from flink_gpu_discovery.ledger import fileformat, files, upstream
from flink_gpu_discovery.ledger.lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.host import Deadline, Host
    from flink_gpu_discovery.models import Record


class Ledger:
    """The assignment file at ``path``; a missing one holds nothing, as after every reboot.

    ``roots``: it is that of the program that confines owners, which nobody but root may change.
    """

    __slots__ = ("_host", "_roots", "path")

    def __init__(self, path: str, host: Host, *, roots: bool = False) -> None:
        self.path: Final = path
        self._host: Final = host
        self._roots: Final = roots

    def exists(self) -> bool:
        """Whether there is anything to read; ``read`` says what is wrong with it."""
        return files.exists(self.path)

    def warnings(self) -> tuple[str, ...]:
        """What is wrong with its place, though it works: a network file system."""
        from flink_gpu_discovery import mounts

        kind = mounts.network_file_system(self.path, self._host.proc)
        if not kind:
            return ()
        return (
            f"{self.path} lies on a network file system ({kind}): locks may fail there, and owners on other hosts"
            " look dead; use a local one",
        )

    def check_place(self) -> None:
        """``PermissionRefusedError`` if it is to be root's and somebody else could have put it there."""
        if self._roots:
            from flink_gpu_discovery import ownership

            ownership.check(os.path.dirname(self.path))

    def lock(self, deadline: Deadline) -> Lock:
        """Hold it for a read that a ``replace`` follows."""
        self.check_place()
        return Lock(f"{self.path}.lock", deadline, self._host, self._modes)

    @property
    def _modes(self) -> files.Modes:
        return files.ROOTS if self._roots else files.SHARED

    def read(self) -> tuple[Record, ...]:
        """Its records. Needs no lock, since the file is only ever replaced as a whole.

        ``LedgerDamagedError`` names the file; ``UpstreamFileError`` if it is upstream's.
        """
        content = files.read(self.path)
        if content is None:
            return ()
        entries = upstream.recognise(content)
        if entries == () and files.size(f"{self.path}.lock") > 0:
            raise LedgerDamagedError(f"{self.path} was emptied, though a ledger was there", fileformat.MEND)
        if entries is not None:
            raise upstream.UpstreamFileError(self.path, entries)
        try:
            return fileformat.parse(content)
        except LedgerDamagedError as error:
            raise LedgerDamagedError(f"{self.path}: {error.what}", error.mend) from error

    def holds(self, records: tuple[Record, ...]) -> bool:
        """Whether the file says just this; a missing one says nothing."""
        content = files.read(self.path)
        return (content is None and not records) or content == fileformat.render(records)

    def remove_leftover(self) -> None:
        """Remove what an interrupted call may have left beside it; only under the lock."""
        files.remove_leftover(self.path)

    def replace(self, lock: Lock, records: tuple[Record, ...]) -> None:
        """Put ``records`` in the place of what stands there; on an error that stands unchanged.

        ``TryAgainError`` if ``lock`` is no longer the file at its path.
        """
        files.prepare(self.path, fileformat.render(records), self._modes)
        lock.check()
        files.put(self.path)
        lock.note_ledger()
