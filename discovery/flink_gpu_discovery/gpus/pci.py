"""PCI addresses in the kernel's spelling, as in ``/sys/bus/pci/devices``."""

from __future__ import annotations


def normal_address(text: str) -> str:
    """``00000000:17:00.0`` (NVML, nvidia-smi) or ``0000:17:00.0`` -> ``0000:17:00.0``; else ``ValueError``."""
    domain, bus, rest = text.strip().split(":")
    slot, function = rest.split(".")
    return address(int(domain, 16), int(bus, 16), int(slot, 16), int(function, 16))


def address(domain: int, bus: int, slot: int, function: int) -> str:
    """As ``%04x:%02x:%02x.%d`` in the kernel's ``drivers/pci/probe.c``."""
    if not (0 <= domain < 1 << 32 and 0 <= bus < 256 and 0 <= slot < 32 and 0 <= function < 8):
        raise ValueError(f"no PCI address: {domain:x}:{bus:x}:{slot:x}.{function:x}")
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"
