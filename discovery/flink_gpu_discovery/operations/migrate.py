"""Turn upstream's coordination file into records, under ``--enable-coordination-mode``."""

from __future__ import annotations

from flink_gpu_discovery.errors import LedgerDamagedError, UsageError
from flink_gpu_discovery.ledger.upstream import UpstreamFileError
from flink_gpu_discovery.models import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.models import Gpu, Owner
    from flink_gpu_discovery.processes import Processes


def read_either(ledger: Ledger, gpus: tuple[Gpu, ...], processes: Processes, now: str) -> tuple[Record, ...]:
    """The ledger's records, or those that an upstream file in its place comes to.

    Entries of ended processes are dropped. A PID that lives is taken for the owner, since the file has no start
    time to tell otherwise; one that can't be an owner here, an index that no visible GPU has, or a GPU with two
    live owners is ``LedgerDamagedError``: nothing is lost by guessing.
    """
    try:
        return ledger.read()
    except UpstreamFileError as error:
        by_index = {gpu.index: gpu for gpu in gpus}
        records: dict[str, Record] = {}
        for index, pid in error.entries:
            owner = _live_owner(ledger, processes, index, pid)
            if owner is None:
                continue
            if index not in by_index or index in records:
                what = "is held twice by live processes" if index in records else "is held but not visible"
                raise LedgerDamagedError(
                    f"{ledger.path}: GPU {index} {what} (pid {pid})", "stop that task executor, then try again"
                ) from error
            records[index] = _record(by_index[index], owner, now)
        return tuple(records.values())


def _live_owner(ledger: Ledger, processes: Processes, index: str, pid: int) -> Owner | None:
    if processes.has_ended(pid):
        return None
    try:
        return processes.owner(pid)
    except UsageError as error:
        raise LedgerDamagedError(
            f"{ledger.path}: GPU {index} is held by pid {pid}, but {error.what}", "stop it, then try again"
        ) from error


def _record(gpu: Gpu, owner: Owner, now: str) -> Record:
    return Record(uuid=gpu.uuid, index=gpu.index, pci_address=gpu.pci_address, resource="gpu", owner=owner, since=now)
