"""NVIDIA GPUs through ``nvidia-smi --query-gpu``, where NVML's binding can't be used.

Its output is not trusted: among good lines it prints errors, ``ERR!`` and ``[N/A]``. Only well-formed lines
count; every other one becomes a note.
"""

from __future__ import annotations

import time

from flink_gpu_discovery import bounded
from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.gpus import tools
from flink_gpu_discovery.gpus.pci import hexadecimal, normal_address
from flink_gpu_discovery.models import Gpu, Inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_USUAL = ("/usr/bin", "/usr/local/bin", "/opt/bin", "/usr/local/nvidia/bin", "/run/nvidia/driver/usr/bin")
_FIELDS = "index,uuid,pci.bus_id,mig.mode.current,name"
_FIELDS_BEFORE_MIG = "index,uuid,pci.bus_id,name"
_COMPUTE_APPS = ("--query-compute-apps=gpu_uuid,pid", "--format=csv,noheader")
_UUID_DIGITS = (8, 4, 4, 4, 12)


def query(environment: Mapping[str, str], seconds: float, *, processes: bool = False) -> Inventory:
    """Run it for at most ``seconds``, on request a second time for the processes that compute.

    ``SystemRefusedError`` if it fails and lists no GPU at all.
    """
    end = time.monotonic() + seconds
    path = tools.find("nvidia-smi", environment, _USUAL)
    answered = _run(path, _FIELDS, seconds)
    if "is not a valid field" in answered.output + answered.errors:  # drivers before 450
        answered = _run(path, _FIELDS_BEFORE_MIG, seconds)
    if answered.flooded:
        raise SystemRefusedError(f"{path} printed more than 1 MiB", "find out what it is")
    gpus, notes = parse(answered.output)
    complaint = " ".join([*notes, *answered.errors.split("\n")]).strip()
    if "version mismatch" in complaint:
        raise SystemRefusedError(
            f"nvidia-smi: {complaint[:200]}", "the driver was upgraded under way: reboot, or reload its kernel modules"
        )
    if answered.status != 0 and not gpus:
        raise SystemRefusedError(
            f"nvidia-smi: status {answered.status}: {complaint[:200] or 'no message'}", "see 'nvidia-smi' and 'dmesg'"
        )
    if processes and gpus:
        listed = bounded.run_tool("nvidia-smi", path, _COMPUTE_APPS, max(0.0, end - time.monotonic()))
        gpus = with_processes(gpus, listed.output)
    return Inventory("nvidia-smi", gpus, tuple([f"nvidia-smi: {note}" for note in notes]))


def _run(path: str, fields: str, seconds: float) -> bounded.Answer:
    arguments = (f"--query-gpu={fields}", "--format=csv,noheader,nounits")
    return bounded.run_tool("nvidia-smi", path, arguments, seconds)


def parse(output: str) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """The GPUs of the well-formed lines, and a note on each other one (at most 8)."""
    gpus: list[Gpu] = []
    notes: list[str] = []
    for line in output.splitlines():
        gpu = _gpu(line)
        if gpu is None and line.strip() and "No devices were found" not in line:
            notes.append(_note(line))
        elif gpu is not None:
            gpus.append(gpu)
    return tuple(gpus), tuple(notes[:8])


def with_processes(gpus: tuple[Gpu, ...], output: str) -> tuple[Gpu, ...]:
    """The GPUs, each with the PIDs of its well-formed ``uuid, pid`` lines."""
    lines = [[column.strip() for column in line.split(",")] for line in output.splitlines()]
    pairs = [(line[0], int(line[1])) for line in lines if len(line) == 2 and line[1].isascii() and line[1].isdigit()]
    return tuple([gpu.computing(tuple([pid for uuid, pid in pairs if uuid == gpu.uuid])) for gpu in gpus])


def _note(line: str) -> str:
    columns = [column.strip() for column in line.split(",")]
    if len(columns) > 4 and columns[3] == "Enabled":
        return f"GPU {columns[0][:4]} is left out: MIG is on, and only the nvml backend lists its instances"
    return f"left out: {line.strip()[:120]}"


def _gpu(line: str) -> Gpu | None:
    """A GPU that can be handed out, or None."""
    columns = [column.strip() for column in line.split(",")]
    if len(columns) == 5 and columns[3] in ("Disabled", "[N/A]", "N/A", "[Not Supported]"):
        del columns[3]
    if len(columns) != 4:
        return None
    index, uuid, bus_id, name = columns
    if not (index.isascii() and index.isdigit() and len(index) <= 4 and _plain(name)):
        return None
    kind, *digits = uuid.split("-")
    try:
        address = normal_address(bus_id)
        for text, length in zip(digits, _UUID_DIGITS):
            hexadecimal(text, length)
    except ValueError:
        return None
    if kind != "GPU" or [len(text) for text in digits] != list(_UUID_DIGITS):
        return None
    return Gpu(uuid=uuid, index=str(int(index)), pci_address=address, name=name, vendor="nvidia")


def _plain(name: str) -> bool:
    return name.isascii() and name.isprintable() and "ERR!" not in name and 0 < len(name) <= 96
