"""The ledger of a host: read by anybody at any time, changed under its lock only."""

from __future__ import annotations

from flink_gpu_discovery.errors import DiscoveryError, LedgerDamagedError
from flink_gpu_discovery.ledger import fileformat, files, upstream
from flink_gpu_discovery.ledger.lock import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.host import Deadline
    from flink_gpu_discovery.models import Record


class Ledger:
    """The assignment file at ``path``; a missing one holds nothing, as after every reboot."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path: Final = path

    def exists(self) -> bool:
        """Whether there is anything to read; ``read`` says what is wrong with it."""
        return files.exists(self.path)

    def lock(self, deadline: Deadline) -> Lock:
        """Hold it for a read that a ``replace`` follows."""
        return Lock(f"{self.path}.lock", deadline)

    def read(self) -> tuple[Record, ...]:
        """Its records. Needs no lock, since the file is only ever replaced as a whole.

        ``LedgerDamagedError`` names the file; ``UpstreamFileError`` if it is upstream's.
        """
        content = files.read(self.path)
        if content is None:
            return ()
        entries = upstream.recognise(content)
        if entries is not None:
            raise upstream.UpstreamFileError(self.path, entries)
        try:
            return fileformat.parse(content)
        except LedgerDamagedError as error:
            raise LedgerDamagedError(f"{self.path}: {error.what}", error.mend) from error

    def replace(self, before: tuple[Record, ...], after: tuple[Record, ...]) -> None:
        """Write ``after`` where ``before`` stood; only under the lock. On an error ``before`` stands again."""
        files.replace(self.path, fileformat.render(after))
        try:
            files.sync_folder(self.path)
        except DiscoveryError:
            files.replace(self.path, fileformat.render(before))
            raise
