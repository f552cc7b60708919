"""NVIDIA GPUs through NVML, with the real binding ``pynvml`` (distribution ``nvidia-ml-py``).

Everything that touches the library happens in a bounded child (``answer``); the parent reads its lines.
One GPU that can't be asked is left out with a note, and does not hide the others.
"""

from __future__ import annotations

import os
import sys

from flink_gpu_discovery import bounded, fields
from flink_gpu_discovery.errors import NoDriverError, SystemRefusedError
from flink_gpu_discovery.gpus.pci import normal_address
from flink_gpu_discovery.models import Gpu, Inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from flink_gpu_discovery.host import Host

_MISMATCH_MEND = "the driver was upgraded under way: reboot, or unload and reload its kernel modules"


def query(host: Host, seconds: float, *, processes: bool = False) -> Inventory:
    """Ask NVML for at most ``seconds``, on request also for the processes that compute on each GPU.

    ``SystemRefusedError`` or ``TryAgainError`` if it doesn't answer.
    """
    answered = bounded.ask("NVML", lambda: answer(processes=processes), seconds)
    lines = _lines(answered.output)
    for line in lines:
        if line[0] == "absent" and not os.path.exists(f"{host.proc}/driver/nvidia/version"):
            raise NoDriverError(f"NVML: {line[1]}", line[2])
        if line[0] in ("absent", "error"):
            raise SystemRefusedError(f"NVML: {line[1]}", line[2])
    if not lines or lines[-1] != ("end",):
        raise SystemRefusedError(
            f"NVML: the query ended early with status {answered.status}: {answered.errors.strip()[-200:]}",
            "see 'dmesg' for the driver's messages",
        )
    gpus = tuple([_gpu(line) for line in lines if line[0] == "gpu"])
    return Inventory("nvml", gpus, tuple([line[1] for line in lines if line[0] == "note"]))


def _lines(output: str) -> list[tuple[str, ...]]:
    try:
        return [fields.split(line) for line in output.splitlines()]
    except ValueError:
        return []  # the library itself wrote into the answer


def _gpu(line: tuple[str, ...]) -> Gpu:
    _, index, uuid, pci_address, name, node, mig, fault, pids = line
    gpu_instance, _, compute_instance = mig.partition(".")
    return Gpu(
        uuid=uuid,
        index=index,
        pci_address=pci_address,
        name=name,
        vendor="nvidia",
        node=node,
        mig=(int(gpu_instance), int(compute_instance)) if mig else None,
        fault=fault,
        compute_pids=tuple([int(pid) for pid in pids.split(",") if pid]),
    )


def answer(*, processes: bool) -> None:
    """In the child: write one line per GPU or note, then ``end``; or one error, ``absent`` if there is no driver."""
    try:
        pynvml = _imported()
    except ImportError:
        _say("absent", "pynvml is not importable", "install nvidia-ml-py beside this program")
        return
    try:
        pynvml.nvmlInit()
        count = pynvml.nvmlDeviceGetCount()
    except pynvml.NVMLError as error:
        mismatch = isinstance(error, pynvml.NVMLError_LibRmVersionMismatch)
        absent = isinstance(error, (pynvml.NVMLError_LibraryNotFound, pynvml.NVMLError_DriverNotLoaded))
        _say(
            "absent" if absent else "error", str(error), _MISMATCH_MEND if mismatch else "see 'nvidia-smi' and 'dmesg'"
        )
        return
    for index in range(count):
        try:
            _describe(pynvml, index, processes)
        except pynvml.NVMLError as error:
            _say("note", f"NVML: GPU {index} is left out: {error}")
    _say("end")


def _imported() -> Any:
    """Import pynvml without ``ctypes.util``, which it imports and doesn't use, and which takes half of the time."""
    module: Any = type(os)("ctypes.util")
    module.find_library = _find_library
    sys.modules.setdefault("ctypes.util", module)
    import pynvml

    return pynvml


def _find_library(name: str) -> str | None:
    """The real one, should some release of pynvml call it after all."""
    del sys.modules["ctypes.util"]
    from ctypes.util import find_library

    return find_library(name)


def _describe(pynvml: Any, index: int, processes: bool) -> None:
    """Say what NVML knows of a GPU, or in its place of each MIG instance that it is split into."""
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    address = normal_address(_text(pynvml.nvmlDeviceGetPciInfo(gpu).busId))
    name = _text(pynvml.nvmlDeviceGetName(gpu))
    node = _node(pynvml, gpu)
    fault = _fault(pynvml, gpu)
    if not _mig_enabled(pynvml, gpu):
        uuid, pids = _text(pynvml.nvmlDeviceGetUUID(gpu)), _compute_pids(pynvml, gpu, processes)
        _say("gpu", str(index), uuid, address, name, node, "", fault, pids)
        return
    instances = _mig_instances(pynvml, gpu)
    for place, instance in instances:
        uuid, pids = _text(pynvml.nvmlDeviceGetUUID(instance)), _compute_pids(pynvml, instance, processes)
        _say("gpu", f"{index}:{place}", uuid, address, f"{name} MIG", node, _mig_ids(pynvml, instance), fault, pids)
    if not instances:
        _say("note", f"NVML: GPU {index} is left out: MIG is on and it has no instances")


def _node(pynvml: Any, gpu: Any) -> str:
    try:
        return f"/dev/nvidia{pynvml.nvmlDeviceGetMinorNumber(gpu)}"
    except _not_supported(pynvml):
        return ""  # "not supported" in some virtual machines; it can be used, but not isolated


def _fault(pynvml: Any, gpu: Any) -> str:
    """Why the driver itself says that this GPU must be replaced; counts of past errors are no reason."""
    try:
        if pynvml.nvmlDeviceGetRemappedRows(gpu)[3]:
            return "row remapping failed"
    except _not_supported(pynvml):
        pass  # before Ampere
    return ""


def _compute_pids(pynvml: Any, device: Any, wanted: bool) -> str:
    """PIDs of nvmlDeviceGetComputeRunningProcesses; graphics alone, as of a desktop, are no use to speak of."""
    if not wanted:
        return ""
    try:
        processes = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    except _not_supported(pynvml):
        return ""
    return ",".join([str(process.pid) for process in processes])


def _mig_enabled(pynvml: Any, gpu: Any) -> bool:
    try:
        return bool(pynvml.nvmlDeviceGetMigMode(gpu)[0] == pynvml.NVML_DEVICE_MIG_ENABLE)
    except _not_supported(pynvml):
        return False  # a GPU or a driver without MIG


def _mig_instances(pynvml: Any, gpu: Any) -> list[tuple[int, Any]]:
    found = []
    for place in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            found.append((place, pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, place)))
        except (pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NoPermission):
            continue  # places may be empty, and in a container or a confinement closed
    return found


def _mig_ids(pynvml: Any, instance: Any) -> str:
    """``gi.ci``, which name its capability nodes."""
    return f"{pynvml.nvmlDeviceGetGpuInstanceId(instance)}.{pynvml.nvmlDeviceGetComputeInstanceId(instance)}"


def _not_supported(pynvml: Any) -> tuple[type[Exception], ...]:
    """A GPU or a driver without the feature; any other error means that the GPU can't be trusted."""
    return pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound


def _text(value: str | bytes) -> str:
    """Pynvml answered in bytes up to release 11.5."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _say(*values: str) -> None:
    os.write(1, fields.join(values).encode("ascii") + b"\n")
