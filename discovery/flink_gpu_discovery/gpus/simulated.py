"""Simulated GPUs, for trying things out where there are none: ``simulated:N[,nodes=/dev/NAME%d]``."""

from __future__ import annotations

from flink_gpu_discovery.errors import UsageError
from flink_gpu_discovery.models import Gpu, Inventory

_MOST = 4096


def query(backend: str) -> Inventory:
    """N healthy GPUs, always the same ones; with ``nodes``, each has a device node by its index."""
    count_text, comma, option = backend.removeprefix("simulated:").partition(",")
    name, _, pattern = option.partition("=")
    count = int(count_text) if count_text.isascii() and count_text.isdigit() and len(count_text) <= 4 else -1
    nodes_fit = not comma or (name == "nodes" and pattern.startswith("/dev/") and pattern.count("%") == 1)
    if not (0 <= count <= _MOST and nodes_fit and (not comma or "%d" in pattern)):
        raise UsageError(
            f"bad backend {backend[:80]!r}", f"give simulated:N, N at most {_MOST}, or simulated:N,nodes=/dev/NAME%d"
        )
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
