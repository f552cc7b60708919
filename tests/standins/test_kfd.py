"""The fake ``/sys`` has the kernel's form: KFD nodes, PCI devices, DRM nodes, and the links between."""

from __future__ import annotations

from pathlib import Path

import pytest

from .kfd import KfdCpu, KfdGpu, install, properties
from .sysfs import NVIDIA, PciDevice, install_pci_device, management_vga

pytestmark = pytest.mark.timeout(60)

UNIQUE_ID = 10645161697164847644
GPU = KfdGpu("0000:03:00.0", render_minor=130, card=2, unique_id=UNIQUE_ID, gpu_id=51234)
GPU_AT_C3 = KfdGpu("0000:c3:00.0", render_minor=129, card=1)

# As seen on a host with MI210s (ROCm/k8s-device-plugin, testdata/topo-mi210-xgmi-pcie/nodes).
CPU_NAMES = [
    *("cpu_cores_count", "simd_count", "mem_banks_count", "caches_count", "io_links_count", "p2p_links_count"),
    *("cpu_core_id_base", "simd_id_base", "max_waves_per_simd", "lds_size_in_kb", "gds_size_in_kb", "num_gws"),
    *("wave_front_size", "array_count", "simd_arrays_per_engine", "cu_per_simd_array", "simd_per_cu"),
    *("max_slots_scratch_cu", "gfx_target_version", "vendor_id", "device_id", "location_id", "domain"),
    *("drm_render_minor", "hive_id", "num_sdma_engines", "num_sdma_xgmi_engines"),
    *("num_sdma_queues_per_engine", "num_cp_queues", "max_engine_clk_ccompute"),
]
GPU_NAMES = [
    *CPU_NAMES[:-1],
    *("max_engine_clk_fcompute", "local_mem_size", "fw_version", "capability", "debug_prop"),
    *("sdma_fw_version", "unique_id", "num_xcc", "max_engine_clk_ccompute"),
]


def nodes(root: Path) -> Path:
    return root / "class" / "kfd" / "kfd" / "topology" / "nodes"


def values(text: str) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split(" ") for line in text.splitlines())}


def test_properties_have_the_kernels_names_in_the_kernels_order() -> None:
    assert list(values(properties(KfdCpu()))) == CPU_NAMES
    assert list(values(properties(GPU))) == GPU_NAMES


def test_a_gpu_node_tells_place_and_identity_in_decimal() -> None:
    got = values(properties(GPU))
    assert (got["domain"], got["location_id"], got["drm_render_minor"]) == (0, 768, 130)
    assert (got["vendor_id"], got["device_id"], got["unique_id"]) == (4098, 0x740F, UNIQUE_ID)
    assert got["simd_count"] > 0


def test_location_holds_bus_device_and_function() -> None:
    got = values(properties(KfdGpu("000a:c3:1f.7", render_minor=128, card=0)))
    assert (got["domain"], got["location_id"]) == (10, 0xC3FF)


def test_a_cpu_node_has_cores_no_gpu_id_and_no_simd(tmp_path: Path) -> None:
    folder = nodes(install(tmp_path, [KfdCpu(cores=8), GPU])) / "0"
    got = values((folder / "properties").read_text(encoding="ascii"))
    assert (got["cpu_cores_count"], got["simd_count"], got["location_id"]) == (8, 0, 0)
    assert (folder / "gpu_id").read_text(encoding="ascii") == "0\n"
    assert (folder / "name").read_text(encoding="ascii") == "\n"


def test_nodes_are_numbered_in_the_order_given(tmp_path: Path) -> None:
    root = install(tmp_path, [KfdCpu(), KfdCpu(), GPU])
    assert sorted(entry.name for entry in nodes(root).iterdir()) == ["0", "1", "2"]
    assert (nodes(root) / "2" / "gpu_id").read_text(encoding="ascii") == "51234\n"
    assert (nodes(root) / "2" / "name").read_text(encoding="ascii") == "aldebaran\n"


def test_a_gpu_is_a_pci_device_with_card_and_render_node(tmp_path: Path) -> None:
    device = install(tmp_path, [GPU]) / "bus" / "pci" / "devices" / "0000:03:00.0"
    assert (device / "vendor").read_text(encoding="ascii") == "0x1002\n"
    assert (device / "device").read_text(encoding="ascii") == "0x740f\n"
    assert (device / "unique_id").read_text(encoding="ascii") == f"{UNIQUE_ID:016x}\n"
    assert sorted(entry.name for entry in (device / "drm").iterdir()) == ["card2", "renderD130"]
    assert (device / "drm" / "card2" / "dev").read_text(encoding="ascii") == "226:2\n"
    assert (device / "drm" / "renderD130" / "dev").read_text(encoding="ascii") == "226:130\n"


def test_links_lead_from_class_to_device_as_in_the_real_tree(tmp_path: Path) -> None:
    root = install(tmp_path, [GPU])
    device = (root / "bus" / "pci" / "devices" / "0000:03:00.0").resolve()
    assert device == root.resolve() / "devices" / "pci0000:03" / "0000:03:00.0"
    assert (root / "class" / "drm" / "renderD130" / "device").resolve() == device
    assert (root / "class" / "kfd" / "kfd").is_symlink()


def test_a_board_without_a_unique_id_lacks_the_file(tmp_path: Path) -> None:
    root = install(tmp_path, [KfdGpu("0000:03:00.0", render_minor=128, card=0)])
    assert not (root / "bus" / "pci" / "devices" / "0000:03:00.0" / "unique_id").exists()
    assert values((nodes(root) / "0" / "properties").read_text(encoding="ascii"))["unique_id"] == 0


def test_a_denied_gpu_cannot_be_read_even_by_root(tmp_path: Path) -> None:
    root = install(tmp_path, [KfdGpu("0000:03:00.0", render_minor=128, card=0, denied=True), GPU_AT_C3])
    for name in ("gpu_id", "name", "properties"):
        with pytest.raises(PermissionError):
            (nodes(root) / "0" / name).read_text(encoding="ascii")
    assert (nodes(root) / "1" / "properties").read_text(encoding="ascii")


def test_fields_of_newer_kernels_can_be_taken_out() -> None:
    old = KfdGpu("0000:03:00.0", render_minor=128, card=0, properties={"unique_id": None, "domain": None})
    assert {"unique_id", "domain"}.isdisjoint(values(properties(old)))


def test_partitions_share_an_address_and_have_drm_nodes_of_their_own(tmp_path: Path) -> None:
    parts = [KfdGpu("0000:03:00.0", render_minor=128 + n, card=n, partition=n, gpu_id=9 + n) for n in range(3)]
    root = install(tmp_path, parts)
    places = [values(properties(part))["location_id"] for part in parts]
    assert places == [0x300, 0x301, 0x302]
    drm = root / "bus" / "pci" / "devices" / "0000:03:00.0" / "drm"
    assert len(list(drm.iterdir())) == 6


def test_other_devices_take_card_numbers_without_a_kfd_node(tmp_path: Path) -> None:
    root = install(tmp_path, [GPU], others=[management_vga("0000:02:00.0")])
    assert len(list(nodes(root).iterdir())) == 1
    vga = root / "bus" / "pci" / "devices" / "0000:02:00.0"
    assert (vga / "vendor").read_text(encoding="ascii") == "0x1a03\n"
    assert (vga / "class").read_text(encoding="ascii") == "0x030000\n"
    assert [entry.name for entry in (vga / "drm").iterdir()] == ["card0"]


def test_an_nvidia_gpu_may_be_installed_without_kfd(tmp_path: Path) -> None:
    device = install_pci_device(tmp_path, PciDevice("0000:41:00.0", NVIDIA, cards=(1,), render_minors=(128,)))
    assert (device / "vendor").read_text(encoding="ascii") == "0x10de\n"
    assert (device / "drm" / "renderD128" / "dev").read_text(encoding="ascii") == "226:128\n"
    assert not (tmp_path / "class" / "kfd").exists()
