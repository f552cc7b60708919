"""Turn upstream's coordination file into records, under ``--enable-coordination-mode``."""

from __future__ import annotations

from flink_gpu_discovery.errors import LedgerDamagedError, UsageError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.host import utc_now
from flink_gpu_discovery.ledger.upstream import UpstreamFileError
from flink_gpu_discovery.models import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.ledger.lock import Lock
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.models import Gpu, Owner
    from flink_gpu_discovery.operations.context import Context
    from flink_gpu_discovery.processes import Processes


def migrate(context: Context, ledger: Ledger) -> None:
    """Replace an upstream file by the ledger that it comes to; does nothing to a ledger."""
    try:
        ledger.read()
    except UpstreamFileError:
        seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
        with ledger.lock(context.deadline) as lock:
            records = read_either(ledger, lock, seen.gpus, context.processes, utc_now())
            ledger.replace(lock, records)


def read_either(
    ledger: Ledger, lock: Lock, gpus: tuple[Gpu, ...], processes: Processes, now: str
) -> tuple[Record, ...]:
    """The ledger's records, or those that an upstream file in its place comes to.

    Entries of ended processes are dropped. A PID that lives is taken for the owner, since the file has no start
    time to tell otherwise; one that can't be an owner here, an index that no GPU of the host has, a GPU with two
    live owners, or a file where a ledger of ours stood before is ``LedgerDamagedError``: nothing is lost by guessing.
    """
    try:
        return ledger.read()
    except UpstreamFileError as error:
        if lock.knows_ledger:
            raise LedgerDamagedError(
                f"{ledger.path} was emptied or replaced by upstream's file, though a ledger was there",
                "remove it and its lock once no task executor of this host runs",
            ) from error
        by_index = {gpu.index: gpu for gpu in gpus}
        records: dict[str, Record] = {}
        for index, pid in error.entries:
            owner = _live_owner(ledger, processes, index, pid)
            if owner is None:
                continue
            if index not in by_index or index in records:
                what = (
                    "is held twice by live processes" if index in records else "is held, but this host has no such GPU"
                )
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
