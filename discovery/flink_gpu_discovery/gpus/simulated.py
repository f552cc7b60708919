"""Simulated GPUs, for trying things out where there are none: ``simulated:N[,nodes=/dev/NAME%d]``."""

from __future__ import annotations

from flink_gpu_discovery.errors import UsageError
from flink_gpu_discovery.models import Gpu, Inventory
from flink_gpu_discovery.options import simulation


def query(backend: str) -> Inventory:
    """N healthy GPUs, always the same ones; with ``nodes``, each has a device node by its index."""
    asked = simulation(backend)
    if asked is None:
        raise UsageError(f"bad backend {backend[:60]!r}", "give simulated:N")
    count, pattern = asked
    return Inventory(backend, tuple([_gpu(index, pattern) for index in range(count)]))


def _gpu(index: int, pattern: str) -> Gpu:
    bus, domain = index % 256, index // 256
    return Gpu(
        uuid=f"GPU-51301a7e-0000-4000-8000-{index:012x}",
        index=str(index),
        pci_address=f"{domain:04x}:{bus:02x}:00.0",
        name="Simulated GPU",
        vendor="simulated",
        node=pattern % index if pattern else "",
    )
