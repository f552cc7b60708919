"""What the two AMD backends share: names under which ROCm knows a GPU."""

from __future__ import annotations


def uuid(unique_id: int, pci_address: str) -> str:
    """``GPU-`` and 16 hexadecimal digits, as ROCR_VISIBLE_DEVICES takes it; by address for GPUs without one."""
    return f"GPU-{unique_id:016x}" if unique_id else f"GPU-PCI-{pci_address}"
