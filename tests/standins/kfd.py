"""Writes a ``/sys`` tree as amdgpu's compute part (KFD), DRM and PCI show it.

Field names, their order and their number formats are those of the kernel's
``drivers/gpu/drm/amd/amdkfd/kfd_topology.c`` (``node_show``), and folders that are links there are links
here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .sysfs import PciDevice, install_pci_device

AMD = 0x1002

# A file that refuses to be opened for reading whoever asks, root included.
_FORBIDDEN = "/proc/sys/vm/compact_memory"

_SHARED_FIELDS = (
    *("cpu_cores_count", "simd_count", "mem_banks_count", "caches_count", "io_links_count", "p2p_links_count"),
    *("cpu_core_id_base", "simd_id_base", "max_waves_per_simd", "lds_size_in_kb", "gds_size_in_kb", "num_gws"),
    *("wave_front_size", "array_count", "simd_arrays_per_engine", "cu_per_simd_array", "simd_per_cu"),
    *("max_slots_scratch_cu", "gfx_target_version", "vendor_id", "device_id", "location_id", "domain"),
    *("drm_render_minor", "hive_id", "num_sdma_engines", "num_sdma_xgmi_engines"),
    *("num_sdma_queues_per_engine", "num_cp_queues"),
)
_GPU_FIELDS = (
    *("max_engine_clk_fcompute", "local_mem_size", "fw_version", "capability", "debug_prop"),
    *("sdma_fw_version", "unique_id", "num_xcc"),
)
_LAST_FIELDS = ("max_engine_clk_ccompute",)


@dataclass(frozen=True)
class KfdCpu:
    """A node of processors alone; its gpu_id is 0."""

    cores: int = 64


@dataclass(frozen=True)
class KfdGpu:
    """A GPU, or one of its partitions: these share a PCI address and differ in ``partition``.

    ``denied`` is a GPU that the device cgroup denies to whoever reads: the kernel refuses to show its
    node. ``properties`` replaces or adds fields, None takes one out, as in an older kernel.
    """

    pci: str
    render_minor: int
    card: int
    unique_id: int = 0
    gpu_id: int = 12345
    name: str = "aldebaran"
    device_id: int = 0x740F
    partition: int = 0
    denied: bool = False
    properties: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def location(self) -> tuple[int, int]:
        """Domain and location_id: the bus in bits 15 to 8, device and function below."""
        domain, bus, rest = self.pci.split(":")
        device, function = rest.split(".")
        location = int(bus, 16) << 8 | int(device, 16) << 3 | int(function, 16)
        return int(domain, 16), location | self.partition


def install(folder: Path, nodes: Sequence[KfdCpu | KfdGpu], *, others: Sequence[PciDevice] = ()) -> Path:
    """Write the tree and return its root, which stands for ``/sys``.

    ``others`` are PCI devices without a KFD node, say the management controller's VGA that is card0.
    """
    topology = folder / "devices" / "virtual" / "kfd" / "kfd" / "topology"
    (topology / "nodes").mkdir(parents=True)
    (topology / "generation_id").write_text("2\n", encoding="ascii")
    (topology / "system_properties").write_text("platform_oem 0\nplatform_id 0\nplatform_rev 0\n", encoding="ascii")
    kfd_class = folder / "class" / "kfd"
    kfd_class.mkdir(parents=True)
    (kfd_class / "kfd").symlink_to("../../devices/virtual/kfd/kfd")
    for number, node in enumerate(nodes):
        _write_node(topology / "nodes" / str(number), node)
    for device in [*_pci_devices([node for node in nodes if isinstance(node, KfdGpu)]), *others]:
        install_pci_device(folder, device)
    return folder


def properties(node: KfdCpu | KfdGpu) -> str:
    """The text of a node's ``properties`` file."""
    values = _cpu_values(node) if isinstance(node, KfdCpu) else _gpu_values(node)
    return "".join(f"{name} {value}\n" for name, value in values.items() if value is not None)


def _cpu_values(cpu: KfdCpu) -> dict[str, int | None]:
    values: dict[str, int | None] = dict.fromkeys((*_SHARED_FIELDS, *_LAST_FIELDS), 0)
    values.update(cpu_cores_count=cpu.cores, mem_banks_count=1, io_links_count=1, max_engine_clk_ccompute=2450)
    return values


def _gpu_values(gpu: KfdGpu) -> dict[str, int | None]:
    values: dict[str, int | None] = dict.fromkeys((*_SHARED_FIELDS, *_GPU_FIELDS, *_LAST_FIELDS), 0)
    domain, location = gpu.location
    values.update(
        simd_count=416,
        mem_banks_count=1,
        io_links_count=1,
        simd_id_base=2147487968,
        wave_front_size=64,
        simd_per_cu=4,
        gfx_target_version=90010,
        vendor_id=AMD,
        device_id=gpu.device_id,
        location_id=location,
        domain=domain,
        drm_render_minor=gpu.render_minor,
        unique_id=gpu.unique_id,
        num_xcc=1,
        max_engine_clk_ccompute=2450,
    )
    values.update(gpu.properties)
    return values


def _write_node(folder: Path, node: KfdCpu | KfdGpu) -> None:
    for name in ("caches", "io_links", "mem_banks", "p2p_links", "perf"):
        (folder / name).mkdir(parents=True)
    gpu_id, asic = (0, "") if isinstance(node, KfdCpu) else (node.gpu_id, node.name)
    denied = isinstance(node, KfdGpu) and node.denied
    files = {"gpu_id": f"{gpu_id}\n", "name": f"{asic}\n", "properties": properties(node)}
    for name, text in files.items():
        if denied:
            (folder / name).symlink_to(_FORBIDDEN)
        else:
            (folder / name).write_text(text, encoding="ascii")


def _pci_devices(gpus: Sequence[KfdGpu]) -> list[PciDevice]:
    """One device for each address: partitions are further DRM nodes of the same one."""
    addresses = dict.fromkeys(gpu.pci for gpu in gpus)
    return [_pci_device([gpu for gpu in gpus if gpu.pci == address]) for address in addresses]


def _pci_device(partitions: Sequence[KfdGpu]) -> PciDevice:
    first = partitions[0]
    return PciDevice(
        first.pci,
        vendor=AMD,
        device=first.device_id,
        cards=tuple(gpu.card for gpu in partitions),
        render_minors=tuple(gpu.render_minor for gpu in partitions),
        # The driver shows the file only where the board has an id.
        attributes={"unique_id": f"{first.unique_id:016x}"} if first.unique_id else {},
    )
