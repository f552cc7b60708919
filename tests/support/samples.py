"""Values for tests of the pure modules."""

from __future__ import annotations

from flink_gpu_discovery.models import Gpu, Owner, Record

BOOT = "5a1e6b7c-0000-4000-8000-000000000001"


def gpu(index: int, *, fault: str = "", uuid: str = "", vendor: str = "nvidia") -> Gpu:
    """GPU ``index``, whose PCI bus is 0x10 higher than it."""
    return Gpu(
        uuid=uuid or f"GPU-{index:08d}",
        index=str(index),
        pci_address=f"0000:{index + 16:02x}:00.0",
        name="Test GPU",
        vendor=vendor,
        fault=fault,
    )


def owner(pid: int, *, start_time: int = 7, command: str = "java") -> Owner:
    """A task executor."""
    return Owner(pid=pid, start_time=start_time, boot_id=BOOT, pid_namespace=4026531836, uid=1000, command=command)


def record(held: Gpu, by: Owner, *, resource: str = "gpu", cgroup: str = "", state: str = "held") -> Record:
    """``held`` as recorded to ``by``."""
    return Record(
        uuid=held.uuid,
        index=held.index,
        pci_address=held.pci_address,
        resource=resource,
        owner=by,
        since="2026-01-02T03:04:05Z",
        cgroup=cgroup,
        state=state,
    )
