"""AMD GPUs from the kernel alone: the KFD topology in ``/sys/class/kfd`` (amdkfd/kfd_topology.c).

The index is a GPU's place in the topology, CPUs left out, which is how ROCr counts.
"""

from __future__ import annotations

import os

from flink_gpu_discovery import bounded, fields
from flink_gpu_discovery.errors import NoDriverError, SystemRefusedError
from flink_gpu_discovery.gpus import amd, pci
from flink_gpu_discovery.host import Host, read_file
from flink_gpu_discovery.models import Gpu, Inventory

_TOPOLOGY = "class/kfd/kfd/topology/nodes"


def query(host: Host, seconds: float) -> Inventory:
    """Read the topology in at most ``seconds`` (a GPU under reset can block its reader)."""
    if not os.path.isdir(f"{host.sys}/{_TOPOLOGY}"):
        raise NoDriverError(f"{host.sys}/{_TOPOLOGY} does not exist", "load the amdgpu kernel module")
    answered = bounded.ask("the KFD topology", lambda: _answer(host), seconds)
    lines = [fields.split(line) for line in answered.output.splitlines()]
    if answered.status != 0:
        raise SystemRefusedError(f"the KFD topology can't be read: {answered.errors.strip()[:200]}", "see 'dmesg'")
    gpus = [_gpu(line) for line in lines if line[0] == "gpu"]
    return Inventory("amd-sysfs", tuple(gpus), tuple([line[1] for line in lines if line[0] == "note"]))


def _gpu(line: tuple[str, ...]) -> Gpu:
    _, index, uuid, address, name, node = line
    return Gpu(uuid=uuid, index=index, pci_address=address, name=name, vendor="amd", node=node)


def _answer(host: Host) -> None:
    """In the child: one line per GPU, or a note where its properties can't be used."""
    nodes = f"{host.sys}/{_TOPOLOGY}"
    index = 0
    for number in sorted([int(name) for name in os.listdir(nodes) if name.isdigit()]):
        try:
            if read_file(f"{nodes}/{number}/gpu_id").strip() in (b"", b"0"):
                continue  # a CPU
            values = fields.join(("gpu", str(index), *_describe(host, f"{nodes}/{number}")))
        except (OSError, ValueError, KeyError) as error:
            values = fields.join(("note", f"KFD node {number} is left out: {error!r}"))
        index += 1
        os.write(1, values.encode("ascii") + b"\n")


def _describe(host: Host, folder: str) -> tuple[str, str, str, str]:
    """UUID, PCI address, name and render node. ``location_id`` is bus << 8 | device << 3 | function."""
    properties = _properties(f"{folder}/properties")
    location = properties["location_id"]
    domain, bus, slot = properties.get("domain", 0), location >> 8, location >> 3 & 31
    address = pci.address(domain, bus, slot, location & 7)
    if not os.path.exists(f"{host.sys}/bus/pci/devices/{address}"):
        address = pci.address(domain, bus, slot, 0)  # a partition's number stands where the function did
    minor = properties.get("drm_render_minor", 0)
    node = f"/dev/dri/renderD{minor}" if minor > 0 else ""
    name = f"AMD {properties.get('device_id', 0):04x} {_name(folder)}".strip()
    return amd.uuid(properties.get("unique_id", 0), address), address, name, node


def _properties(path: str) -> dict[str, int]:
    """``name value`` lines with decimal values."""
    pairs = [line.split() for line in read_file(path).decode("ascii").splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def _name(folder: str) -> str:
    try:
        return read_file(f"{folder}/name").decode("ascii", "replace").strip()
    except OSError:
        return ""
