"""Ask the wanted backend for the host's GPUs; ``auto`` tries the real ones in turn."""

from __future__ import annotations

import time

from flink_gpu_discovery.errors import NoDriverError, SystemRefusedError
from flink_gpu_discovery.models import Inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from flink_gpu_discovery.host import Deadline, Host

_AUTOMATIC = ("nvml", "nvidia-smi", "amd-sysfs", "rocm-smi")
# Left of the deadline for the ledger and the answer when a query has used up its share.
_RESERVE_SECONDS = 0.25
# A driver that re-initialises lists no GPU for a moment (Olares issue 2671).
_SETTLE_SECONDS = 2.0
_PAUSE_SECONDS = 0.2


def take(
    backend: str, host: Host, environment: Mapping[str, str], deadline: Deadline, *, processes: bool = False
) -> Inventory:
    """The GPUs that ``backend`` sees now, on request with the processes that compute on them, where it can tell.

    None at all is asked again for a moment. ``SystemRefusedError`` when no driver answers, ``TryAgainError``
    when it doesn't in time.
    """
    settled = time.monotonic() + _SETTLE_SECONDS
    while True:
        inventory = _without_doubles(_ask(backend, host, environment, deadline, processes))
        if inventory.gpus or backend.startswith("simulated:"):
            return inventory
        if time.monotonic() >= settled or _seconds_left(deadline) <= _PAUSE_SECONDS:
            return inventory
        time.sleep(_PAUSE_SECONDS)


def _ask(backend: str, host: Host, environment: Mapping[str, str], deadline: Deadline, processes: bool) -> Inventory:
    if backend.startswith("simulated:"):
        from flink_gpu_discovery.gpus import simulated

        return simulated.query(backend)
    if backend == "nvml":
        from flink_gpu_discovery.gpus import nvml

        return nvml.query(host, _seconds_left(deadline), processes=processes)
    if backend == "nvidia-smi":
        from flink_gpu_discovery.gpus import nvidia_smi

        return nvidia_smi.query(environment, _seconds_left(deadline), processes=processes)
    if backend == "amd-sysfs":
        from flink_gpu_discovery.gpus import amd_sysfs

        return amd_sysfs.query(host, _seconds_left(deadline))
    if backend == "rocm-smi":
        from flink_gpu_discovery.gpus import rocm_smi

        return rocm_smi.query(environment, _seconds_left(deadline))
    return _first_that_sees_gpus(host, environment, deadline, processes)


def _first_that_sees_gpus(host: Host, environment: Mapping[str, str], deadline: Deadline, processes: bool) -> Inventory:
    failures: list[SystemRefusedError] = []
    empty: Inventory | None = None
    for backend in _AUTOMATIC:
        try:
            inventory = _ask(backend, host, environment, deadline, processes)
        except SystemRefusedError as error:
            failures.append(error)
            continue
        if inventory.gpus:
            return inventory
        empty = empty or inventory
    tried = tuple([error.what[:160] for error in failures])
    if empty is not None:
        return Inventory(empty.backend, (), (*empty.notes, *tried))
    mends = [error.mend for error in failures if "mismatch" in error.what]
    kind = NoDriverError if all([isinstance(error, NoDriverError) for error in failures]) else SystemRefusedError
    raise kind(
        f"no GPU driver answered; tried {'; '.join(tried)}",
        mends[0] if mends else "install one, or name a --backend",
    )


def _without_doubles(inventory: Inventory) -> Inventory:
    """An index or UUID that a backend lists twice can't be trusted on either GPU."""
    indexes = [gpu.index for gpu in inventory.gpus]
    uuids = [gpu.uuid for gpu in inventory.gpus]
    if len(set(indexes)) == len(indexes) and len(set(uuids)) == len(uuids):
        return inventory
    single = [gpu for gpu in inventory.gpus if indexes.count(gpu.index) == 1 and uuids.count(gpu.uuid) == 1]
    doubles = sorted({f"{gpu.index}={gpu.uuid}" for gpu in inventory.gpus if gpu not in single})
    note = f"{inventory.backend} lists an index or UUID twice, left out: {', '.join(doubles)[:200]}"
    return Inventory(inventory.backend, tuple(single), (*inventory.notes, note))


def _seconds_left(deadline: Deadline) -> float:
    return max(0.0, deadline.remaining() - _RESERVE_SECONDS)
