"""The host's GPU nodes: which belong to which GPU, and what else is a GPU's.

Every number comes from ``stat(2)`` of a node, none is assumed: a minor is not the index, and a major need not be the
usual one. Sources: ``/proc/devices`` (names of majors), ``/sys/bus/pci/devices/<address>/drm`` (DRM nodes of a PCI
device), ``/proc/driver/nvidia/capabilities`` (MIG).
"""

from __future__ import annotations

import os
import stat

from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.isolation.rules import DeviceNode, Survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.host import Host
    from flink_gpu_discovery.models import Gpu

_DEV = "/dev"
_CLASSES = ("nvidia", "nvidia-frontend", "nvidia-caps", "drm")  # names in /proc/devices whose minors are GPUs'
_SHARED = ("nvidiactl", "nvidia-modeset")  # control nodes among the minors of NVIDIA's major
_NODE_MEND = "see that the driver's nodes are there ('nvidia-modprobe -u -c 0', udev; PrivateDevices=no in the unit)"


def survey(host: Host, gpus: tuple[Gpu, ...]) -> Survey:
    """Look at the nodes of ``gpus`` and at all others of their kind; without GPUs at what is there.

    ``SystemRefusedError`` if one of the GPUs has no node that can be told: what is unknown can't be denied.
    """
    of_gpu = {gpu.uuid: _of_gpu(host, gpu) for gpu in gpus}
    if gpus and all([gpu.vendor == "simulated" for gpu in gpus]):
        every = {node.number: node for nodes in of_gpu.values() for node in nodes}
        return Survey(of_gpu=of_gpu, existing=tuple(every.values()), shared=(), classes=frozenset())
    existing = _existing()
    shared = tuple([node for node in [_look(f"{_DEV}/{name}") for name in _SHARED] if node])
    own = [node for nodes in of_gpu.values() for node in nodes]
    classes = {node.major for node in (*existing, *own)} | _majors(host)
    return Survey(of_gpu=of_gpu, existing=existing, shared=shared, classes=frozenset(classes))


def _of_gpu(host: Host, gpu: Gpu) -> tuple[DeviceNode, ...]:
    if gpu.vendor == "amd":
        return _of_amd(host, gpu)
    if not gpu.node:
        raise SystemRefusedError(
            f"GPU {gpu.index} ({gpu.uuid}) has no device node that is known, so it can't be kept from anybody",
            "leave out --isolate on this host, or --backend simulated:N,nodes=/dev/NAME%d where it is simulated",
        )
    node = _needed(gpu, gpu.node)
    if gpu.mig:
        return (node, *[_needed(gpu, path) for path in _capabilities(host, gpu, gpu.mig)])
    return (node, *_drm_nodes(host, gpu))


def _of_amd(host: Host, gpu: Gpu) -> tuple[DeviceNode, ...]:
    """The card and render nodes of its PCI device; a partition other than the first has only its render node."""
    drm = _drm_nodes(host, gpu)
    if gpu.node and gpu.node not in [node.path for node in drm]:
        return (_needed(gpu, gpu.node),)
    if not drm:
        raise SystemRefusedError(
            f"GPU {gpu.index} ({gpu.uuid}) has no DRM node below {host.sys}/bus/pci/devices/{gpu.pci_address}/drm",
            "see that amdgpu is loaded and udev has made /dev/dri",
        )
    return drm


def _drm_nodes(host: Host, gpu: Gpu) -> tuple[DeviceNode, ...]:
    try:
        names = os.listdir(f"{host.sys}/bus/pci/devices/{gpu.pci_address}/drm")
    except OSError:
        return ()  # nvidia-drm is not loaded
    found = [_look(f"{_DEV}/dri/{name}") for name in sorted(names) if _is_drm(name)]
    return tuple([node for node in found if node])


def _is_drm(name: str) -> bool:
    """``card0-HDMI-A-1`` and the like are no nodes."""
    return name.removeprefix("card").isdigit() or name.removeprefix("renderD").isdigit()


def _capabilities(host: Host, gpu: Gpu, mig: tuple[int, int]) -> tuple[str, ...]:
    """The nodes of a MIG device's GPU instance and compute instance. Source: NVIDIA's MIG guide, "Device nodes"."""
    minor = gpu.node.removeprefix(f"{_DEV}/nvidia")
    folder = f"{host.proc}/driver/nvidia/capabilities/gpu{minor}/mig/gi{mig[0]}"
    numbers = [_device_file(path) for path in (f"{folder}/access", f"{folder}/ci{mig[1]}/access")]
    return tuple([f"{_DEV}/nvidia-caps/nvidia-cap{number}" for number in numbers])


def _device_file(path: str) -> int:
    try:
        for line in read_file(path).decode("ascii").splitlines():
            name, _, value = line.partition(":")
            if name == "DeviceFileMinor":
                return int(value)
        raise ValueError("no DeviceFileMinor")
    except (OSError, ValueError) as error:
        raise SystemRefusedError(
            f"{path} doesn't tell the MIG device's capability node: {error}",
            "load the nvidia module with nv_cap_enable_devfs=1 (the default since driver 450)",
        ) from error


def _needed(gpu: Gpu, path: str) -> DeviceNode:
    node = _look(path)
    if node is None:
        raise SystemRefusedError(f"{path} of GPU {gpu.index} is no device node", _NODE_MEND)
    return node


def _look(path: str) -> DeviceNode | None:
    """The character device at ``path``, None if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISCHR(found.st_mode):
        return None
    return DeviceNode(path, os.major(found.st_rdev), os.minor(found.st_rdev))


def _existing() -> tuple[DeviceNode, ...]:
    """Every node under a GPU's name, of GPUs that the backend doesn't list, too."""
    paths = [f"{_DEV}/{name}" for name in _names(_DEV) if name.removeprefix("nvidia").isdigit()]
    paths += [f"{_DEV}/dri/{name}" for name in _names(f"{_DEV}/dri") if _is_drm(name)]
    paths += [f"{_DEV}/nvidia-caps/{name}" for name in _names(f"{_DEV}/nvidia-caps")]
    return tuple([node for node in [_look(path) for path in sorted(paths)] if node])


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _majors(host: Host) -> set[int]:
    """Of GPU drivers that are loaded, whether or not a node of theirs is there yet."""
    majors = set()
    try:
        character_devices, _, _ = (
            read_file(f"{host.proc}/devices").decode("ascii", "replace").partition("Block devices")
        )
    except OSError:
        return set()
    for line in character_devices.splitlines():
        number, _, name = line.strip().partition(" ")
        if name in _CLASSES and number.isdigit():
            majors.add(int(number))
    return majors
