"""Writes PCI devices and their DRM nodes into a tree that stands for ``/sys``, for GPUs of any vendor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

NVIDIA = 0x10DE
ASPEED = 0x1A03

_DRM_MAJOR = 226
_VGA_CONTROLLER = 0x030000
_ACCELERATOR = 0x120000


@dataclass(frozen=True)
class PciDevice:
    """A device at DOMAIN:BUS:DEVICE.FUNCTION; ``attributes`` are further files beside ``vendor``."""

    address: str
    vendor: int
    device: int = 0x20B0
    pci_class: int = _ACCELERATOR
    cards: tuple[int, ...] = ()
    render_minors: tuple[int, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


def management_vga(address: str = "0000:03:00.0", card: int = 0) -> PciDevice:
    """The screen of a server's management controller, which often takes card0 and renders nothing."""
    return PciDevice(address, ASPEED, 0x2000, _VGA_CONTROLLER, cards=(card,))


def install_pci_device(root: Path, device: PciDevice) -> Path:
    """Write the device's folder and the links to it; returns ``bus/pci/devices/ADDRESS``."""
    bridge = f"pci{device.address[:7]}"
    real = root / "devices" / bridge / device.address
    real.mkdir(parents=True)
    _write_attributes(real, device)
    for card in device.cards:
        _write_drm_node(root, real, f"card{card}", card)
    for minor in device.render_minors:
        _write_drm_node(root, real, f"renderD{minor}", minor)
    link = root / "bus" / "pci" / "devices" / device.address
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../../devices/{bridge}/{device.address}")
    return link


def _write_attributes(folder: Path, device: PciDevice) -> None:
    texts = {
        "vendor": f"0x{device.vendor:04x}",
        "device": f"0x{device.device:04x}",
        "class": f"0x{device.pci_class:06x}",
        "numa_node": "0",
        **device.attributes,
    }
    for name, text in texts.items():
        (folder / name).write_text(f"{text}\n", encoding="ascii")


def _write_drm_node(root: Path, device: Path, name: str, minor: int) -> None:
    folder = device / "drm" / name
    folder.mkdir(parents=True)
    (folder / "dev").write_text(f"{_DRM_MAJOR}:{minor}\n", encoding="ascii")
    (folder / "device").symlink_to(f"../../../{device.name}")
    link = root / "class" / "drm" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(f"../../{device.relative_to(root)}/drm/{name}")
