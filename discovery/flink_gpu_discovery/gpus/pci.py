"""PCI addresses in the kernel's spelling, as in ``/sys/bus/pci/devices``."""

from __future__ import annotations

_HEXADECIMAL = "0123456789abcdefABCDEF"


def normal_address(text: str) -> str:
    """``00000000:17:00.0`` (NVML, nvidia-smi) or ``0000:17:00.0`` -> ``0000:17:00.0``; else ``ValueError``."""
    domain, bus, rest = text.strip().split(":")
    slot, function = rest.split(".")
    return address(*[hexadecimal(part, 8) for part in (domain, bus, slot, function)])


def address(domain: int, bus: int, slot: int, function: int) -> str:
    """As ``%04x:%02x:%02x.%d`` in the kernel's ``drivers/pci/probe.c``."""
    if not (0 <= domain < 1 << 32 and 0 <= bus < 256 and 0 <= slot < 32 and 0 <= function < 8):
        raise ValueError(f"no PCI address: {domain:x}:{bus:x}:{slot:x}.{function:x}")
    return f"{domain:04x}:{bus:02x}:{slot:02x}.{function:x}"


def hexadecimal(text: str, most_digits: int) -> int:
    """Digits only: ``int`` alone would take signs, spaces and underscores, too."""
    if not 0 < len(text) <= most_digits or text.strip(_HEXADECIMAL):
        raise ValueError(f"{text[:20]!r} is no hexadecimal number")
    return int(text, 16)
