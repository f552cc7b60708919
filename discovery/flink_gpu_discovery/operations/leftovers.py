"""What a dead owner has left behind: processes that still use its GPUs.

PyFlink's workers outlive their JVM, and keep the GPU's memory with them.
"""

from __future__ import annotations

from flink_gpu_discovery import cgroups

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.models import Gpu, Record

_MOST_PIDS = 8


def still_used(record: Record, gpu: Gpu | None) -> str:
    """What yet uses a recorded GPU, in words; empty if nothing does, as far as the system tells.

    ``gpu`` is that GPU as the backend sees it now, None if it doesn't.
    """
    try:
        in_cgroup = cgroups.pids_below(record.cgroup) if record.cgroup else ()
    except OSError as error:
        return f"unknown processes: {record.cgroup} can't be read ({error.strerror})"
    if in_cgroup:
        return f"{_pids(in_cgroup)} in its owner's cgroup"
    if gpu is not None and gpu.compute_pids:
        return f"{_pids(gpu.compute_pids)}, which computes on it"
    return ""


def _pids(pids: tuple[int, ...]) -> str:
    shown = ", ".join([str(pid) for pid in pids[:_MOST_PIDS]])
    return f"pid {shown}{' and more' if len(pids) > _MOST_PIDS else ''}"
