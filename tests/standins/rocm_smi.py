"""A stand-in for ``rocm-smi``: the JSON of three generations of the tool, and its failures.

The generations differ in the keys' spelling and in what a card's number means. Up to ROCm 3 it is the DRM
card's number, later it is the position in PCI order among the GPUs that KFD shows.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from .shell import Ending, delay, emit, finish, install_script, log_call, prepare

NAME = "rocm-smi"

LOW_POWER = b"WARNING: AMD GPU device(s) is/are in a low-power state. Check power control/runtime_status\n\n"

_VENDOR = "Advanced Micro Devices, Inc. [AMD/ATI]"


class Generation(Enum):
    """Which tool is stood in for."""

    # ROC-smi, a script over sysfs: DRM numbers, lower-case addresses, unique ids without 0x.
    ROCM_3 = 3
    # The script over librocm_smi64: PCI order, upper-case addresses, "Card series".
    ROCM_5 = 5
    # The same since about 6.1: "Card Series", device ids for models, more product keys.
    ROCM_6 = 6


@dataclass(frozen=True)
class AmdGpu:
    """One GPU; ``unique_id`` None is a board that has none."""

    pci: str
    card: int = 0
    unique_id: int | None = None
    series: str = "AMD Instinct MI210"
    device_id: int = 0x740F
    sku: str = "D67301"
    kfd_node: int = 1
    kfd_gpu_id: int = 12345


@dataclass(frozen=True)
class RocmSmi:
    """How the tool behaves."""

    gpus: tuple[AmdGpu, ...] = ()
    generation: Generation = Generation.ROCM_6
    # Before the JSON on standard output, as seen where both streams are one.
    warning: bytes = b""
    # The real tool's own warnings go here.
    stderr: bytes = b""
    # Printed in place of any answer, whatever was asked.
    message: bytes | None = None
    exit_code: int = 0
    ending: Ending = Ending.EXIT
    flood: bytes = b"{"
    delay_seconds: float = 0
    log: Path | None = None


def no_driver() -> RocmSmi:
    """Without amdgpu the real tool prints nothing on standard output and yet exits with 0."""
    return RocmSmi(message=b"", stderr=b"ERROR:root:Driver not initialized (amdgpu not found in modules)\n")


def no_gpus() -> RocmSmi:
    """With amdgpu loaded and no GPU there is no JSON either, and the exit code is 0 again."""
    return RocmSmi(message=b"", stderr=b"WARNING: No AMD GPUs specified\nWARNING: No JSON data to report\n")


def install(folder: Path, tool: RocmSmi) -> Path:
    """Write the stand-in into a folder that is meant for PATH; returns its path."""
    return install_script(folder, NAME, _script(tool))


def numbered(tool: RocmSmi) -> list[tuple[int, AmdGpu]]:
    """The GPUs under the numbers that this generation gives them, in the order of its answer."""
    if tool.generation is Generation.ROCM_3:
        return [(gpu.card, gpu) for gpu in sorted(tool.gpus, key=lambda gpu: gpu.card)]
    return list(enumerate(sorted(tool.gpus, key=lambda gpu: gpu.pci.lower())))


def _script(tool: RocmSmi) -> Iterator[str]:
    yield from prepare(tool.ending)
    yield from log_call(tool.log)
    yield from delay(tool.delay_seconds)
    if tool.stderr:
        yield emit(tool.stderr, stream=2)
    if tool.message is None:
        yield _OPTIONS
        yield emit(tool.warning) if tool.warning else ":"
        yield from (_card_command(number, gpu, tool.generation) for number, gpu in numbered(tool))
        yield _PRINT
    else:
        yield emit(tool.message)
    yield from finish(tool.ending, tool.exit_code, tool.flood)


def _card_command(number: int, gpu: AmdGpu, generation: Generation) -> str:
    groups = (_unique_id(gpu, generation), _bus(gpu, generation), _product(gpu, generation))
    quoted = " ".join(shlex.quote(json.dumps(group)[1:-1]) for group in groups)
    return f"card {number} {quoted}"


def _unique_id(gpu: AmdGpu, generation: Generation) -> dict[str, str]:
    if generation is Generation.ROCM_3:
        # Left out where there is none, and printed as sysfs has it.
        return {} if gpu.unique_id is None else {"Unique ID": f"{gpu.unique_id:016x}"}
    return {"Unique ID": "N/A" if gpu.unique_id is None else hex(gpu.unique_id)}


def _bus(gpu: AmdGpu, generation: Generation) -> dict[str, str]:
    return {"PCI Bus": gpu.pci.lower() if generation is Generation.ROCM_3 else gpu.pci.upper()}


def _product(gpu: AmdGpu, generation: Generation) -> dict[str, str]:
    model = f"0x{gpu.device_id:04x}"
    if generation is Generation.ROCM_3:
        return {"Card series": gpu.series, "Card vendor": _VENDOR, "Card SKU": gpu.sku}
    if generation is Generation.ROCM_5:
        return {"Card series": gpu.series, "Card model": model, "Card vendor": _VENDOR, "Card SKU": gpu.sku}
    return {
        "Card Series": gpu.series,
        "Card Model": model,
        "Card Vendor": _VENDOR,
        "Card SKU": gpu.sku,
        "Subsystem ID": "0x0c34",
        "Device Rev": "0x02",
        "Node ID": str(gpu.kfd_node),
        "GUID": str(gpu.kfd_gpu_id),
        "GFX Version": "gfx90a",
    }


_OPTIONS = """\
uniqueid= bus= productname= json=
for option; do
  case $option in
    --showuniqueid) uniqueid=yes;;
    --showbus) bus=yes;;
    --showproductname) productname=yes;;
    --json) json=yes;;
    *) printf 'rocm-smi: error: unrecognized arguments: %s\\n' "$option" >&2; exit 2;;
  esac
done
[ -n "$json" ] || { printf 'The stand-in answers with --json alone.\\n' >&2; exit 2; }
all=
card() {
  part=
  [ -n "$uniqueid" ] && part="$2"
  [ -n "$bus" ] && part="$part${part:+, }$3"
  [ -n "$productname" ] && part="$part${part:+, }$4"
  [ -n "$part" ] && all="$all${all:+, }\\"card$1\\": {$part}"
}"""

_PRINT = """\
if [ -n "$all" ]; then
  printf '%s\\n' "{$all}"
else
  printf 'WARNING: No JSON data to report\\n' >&2
fi"""
