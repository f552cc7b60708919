"""GPUs of a lab: their device nodes, what ``/proc`` and ``/sys`` tell of them, and what NVML says.

No driver is behind the nodes, so opening one that is allowed gives ENXIO, and one that a device cgroup denies EPERM.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.standins import kfd
from tests.standins.nvml.scenario import Gpu, MigInstance
from tests.standins.sysfs import NVIDIA, PciDevice, install_pci_device

NVIDIA_MAJOR = 195
CONTROL_MINOR = 255
UVM_MAJOR = 511
CAPABILITIES_MAJOR = 237
DRM_MAJOR = 226
KFD_MAJOR = 510

# Further nodes of the MIG capabilities' numbers, which everybody may open for writing: the stand-in opens for writing
# whatever it is given, the real library opens capabilities for reading.
TWINS = "/opt/nvml/nodes"

_CAPABILITY_MODE = 0o444
_ACCESS = "DeviceFileMinor: {minor}\nDeviceFileMode: 292\nDeviceFileModify: 1\n"

Paths = Callable[[str], Path]


@dataclass(frozen=True)
class Instance:
    """A MIG instance."""

    uuid: str
    gpu_instance: int
    compute_instance: int = 0


@dataclass(frozen=True)
class Card:
    """An NVIDIA GPU; ``index`` is its place, from which the rest follows if nothing is said. MIG is on if split."""

    index: int
    minor: int = -1
    address: str = ""
    uuid: str = ""
    drm: tuple[str, ...] = ()
    instances: tuple[Instance, ...] = ()
    major: int = NVIDIA_MAJOR

    def __post_init__(self) -> None:
        defaults = {
            "minor": self.minor if self.minor >= 0 else self.index,
            "address": self.address or f"0000:{self.index + 0x40:02x}:00.0",
            "uuid": self.uuid or f"GPU-{self.index:08x}-0000-4000-8000-000000000000",
        }
        for name, value in defaults.items():
            object.__setattr__(self, name, value)

    @property
    def node(self) -> str:
        """Its device node."""
        return f"/dev/nvidia{self.minor}"

    @property
    def drm_nodes(self) -> tuple[str, ...]:
        """Its nodes for graphics."""
        return tuple(f"/dev/dri/{name}" for name in self.drm)

    def capability_nodes(self, instance: Instance) -> tuple[str, str]:
        """Of the GPU instance and of the compute instance."""
        gpu, compute = _capability_minors(self, instance)
        return f"/dev/nvidia-caps/nvidia-cap{gpu}", f"/dev/nvidia-caps/nvidia-cap{compute}"


def make_node(path: Path, major: int, minor: int, mode: int = 0o666) -> None:
    """A character device, and the folders above it; the one that is there already is replaced."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mknod(path, 0o020000, os.makedev(major, minor))
    path.chmod(mode)


def install_nvidia(paths: Paths, cards: Sequence[Card]) -> None:
    """The driver's files and nodes for these cards; those of earlier ones stay."""
    version = paths("/proc/driver/nvidia/version")
    version.parent.mkdir(exist_ok=True)
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15\n", encoding="ascii")
    major = cards[0].major if cards else NVIDIA_MAJOR
    make_node(paths("/dev/nvidiactl"), major, CONTROL_MINOR)
    make_node(paths("/dev/nvidia-uvm"), UVM_MAJOR, 0)
    for card in cards:
        make_node(paths(card.node), card.major, card.minor)
        for name in card.drm:
            make_node(paths(f"/dev/dri/{name}"), DRM_MAJOR, _drm_minor(name))
        if not paths(f"/sys/bus/pci/devices/{card.address}").is_symlink():
            install_pci_device(paths("/sys"), _pci_device(card))
    if any(card.instances for card in cards):
        _install_capabilities(paths, cards)


def scenario_gpus(cards: Iterable[Card]) -> tuple[Gpu, ...]:
    """What NVML says of them; it opens their nodes to find out what it may show."""
    return tuple(
        Gpu(
            card.uuid,
            minor=card.minor,
            pci=card.address,
            nodes=(card.node,),
            mig_mode=True if card.instances else None,
            instances=tuple(_scenario_instance(card, instance) for instance in card.instances),
        )
        for card in cards
    )


def install_amd(paths: Paths, nodes: Sequence[kfd.KfdCpu | kfd.KfdGpu]) -> None:
    """The topology and nodes of amdgpu; once a lab."""
    kfd.install(paths("/sys"), nodes)
    make_node(paths("/dev/kfd"), KFD_MAJOR, 0)
    for node in nodes:
        if isinstance(node, kfd.KfdGpu):
            make_node(paths(f"/dev/dri/renderD{node.render_minor}"), DRM_MAJOR, node.render_minor)
            make_node(paths(f"/dev/dri/card{node.card}"), DRM_MAJOR, node.card)


def _drm_minor(name: str) -> int:
    """``card1`` or ``renderD129``: render nodes' names hold their minors, which begin at 128."""
    return int(name.removeprefix("renderD").removeprefix("card"))


def _pci_device(card: Card) -> PciDevice:
    return PciDevice(
        card.address,
        vendor=NVIDIA,
        cards=tuple(_drm_minor(name) for name in card.drm if name.startswith("card")),
        render_minors=tuple(_drm_minor(name) for name in card.drm if name.startswith("renderD")),
    )


def _capability_minors(card: Card, instance: Instance) -> tuple[int, int]:
    """As the driver counts in ``/proc/driver/nvidia-caps/mig-minors``: 15 GPU instances, 8 of compute in each."""
    gpu = 3 + card.minor * 135 + instance.gpu_instance * 9
    return gpu, gpu + 1 + instance.compute_instance


def _install_capabilities(paths: Paths, cards: Sequence[Card]) -> None:
    """Files that name the minors, and their nodes; ``config`` and ``monitor`` are the whole driver's."""
    folder = paths("/proc/driver/nvidia/capabilities")
    files = {folder / "mig" / "config": 1, folder / "mig" / "monitor": 2}
    for card in cards:
        for instance in card.instances:
            gpu, compute = _capability_minors(card, instance)
            instance_folder = folder / f"gpu{card.minor}" / "mig" / f"gi{instance.gpu_instance}"
            files[instance_folder / "access"] = gpu
            files[instance_folder / f"ci{instance.compute_instance}" / "access"] = compute
    for path, minor in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_ACCESS.format(minor=minor), encoding="ascii")
        make_node(paths(f"/dev/nvidia-caps/nvidia-cap{minor}"), CAPABILITIES_MAJOR, minor, _CAPABILITY_MODE)
        make_node(paths(f"{TWINS}/nvidia-cap{minor}"), CAPABILITIES_MAJOR, minor)


def _scenario_instance(card: Card, instance: Instance) -> MigInstance:
    twins = tuple(f"{TWINS}/nvidia-cap{minor}" for minor in _capability_minors(card, instance))
    return MigInstance(instance.uuid, instance.gpu_instance, instance.compute_instance, nodes=twins)
