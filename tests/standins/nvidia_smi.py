"""A stand-in for ``nvidia-smi``: answers queries, and fails in the ways in which the real one does.

Exit codes are the real tool's own (its manual page's "RETURN VALUE"); they are NVML's return codes.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .shell import Ending, delay, emit, finish, install_script, log_call, prepare

NAME = "nvidia-smi"

# Lines that the real tool prints among good ones.
LOST_GPU = b"Unable to determine the device handle for GPU0000:41:00.0: Unknown Error\n"
ERROR_LINE = b"ERR!\n"
GARBAGE = b"\x00\xff\xfe\x80 GPU-\x1b[31m\xc3(\n"

_ALIASES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id"}
_UNITS = {
    "memory.total": "MiB",
    "memory.used": "MiB",
    "memory.free": "MiB",
    "utilization.gpu": "%",
    "power.draw": "W",
}


@dataclass(frozen=True)
class SmiInstance:
    """A MIG instance, which only ``-L`` lists: a query answers for whole GPUs."""

    uuid: str
    profile: str = "1g.5gb"


@dataclass(frozen=True)
class SmiGpu:
    """One GPU; ``fields`` replaces the answer to any field, say ``{"uuid": "[N/A]"}``."""

    index: int
    uuid: str
    pci: str = "00000000:41:00.0"
    name: str = "NVIDIA A100-SXM4-40GB"
    mig_mode: str = "[N/A]"
    memory_mib: int = 40960
    memory_used_mib: int = 0
    instances: tuple[SmiInstance, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)

    def answers(self) -> dict[str, str]:
        """What each field that can be queried is answered with, units left out."""
        domain, bus, device = self.pci.split(".")[0].split(":")
        known = {
            "index": str(self.index),
            "uuid": self.uuid,
            "pci.bus_id": self.pci,
            "pci.domain": f"0x{int(domain, 16):04X}",
            "pci.bus": f"0x{bus.upper()}",
            "pci.device": f"0x{device.upper()}",
            "name": self.name,
            "mig.mode.current": self.mig_mode,
            "mig.mode.pending": self.mig_mode,
            "driver_version": "550.54.15",
            "serial": f"13200{self.index:08d}",
            "persistence_mode": "Enabled",
            "compute_mode": "Default",
            "memory.total": str(self.memory_mib),
            "memory.used": str(self.memory_used_mib),
            "memory.free": str(self.memory_mib - self.memory_used_mib),
            "utilization.gpu": "0",
            "temperature.gpu": "30",
            "power.draw": "50.00",
            "ecc.errors.uncorrected.volatile.total": "0",
        }
        unknown = set(self.fields) - set(known)
        if unknown:
            raise ValueError(f"the stand-in for nvidia-smi knows no field {', '.join(sorted(unknown))}")
        return {**known, **self.fields}


@dataclass(frozen=True)
class NvidiaSmi:
    """How the tool behaves: rows are GPUs, and bytes that come out as they are."""

    rows: tuple[SmiGpu | bytes, ...] = ()
    # Printed in place of any answer, whatever was asked.
    message: bytes | None = None
    stderr: bytes = b""
    exit_code: int = 0
    ending: Ending = Ending.EXIT
    flood: bytes = b"0, GPU-flood, 00000000:41:00.0, ERR!"
    delay_seconds: float = 0
    log: Path | None = None


def version_mismatch(library: str = "550.54") -> NvidiaSmi:
    """What an unattended upgrade leaves behind until the next reboot."""
    text = f"Failed to initialize NVML: Driver/library version mismatch\nNVML library version: {library}\n"
    return NvidiaSmi(message=text.encode("ascii"), exit_code=18)


def no_driver() -> NvidiaSmi:
    """The kernel module is not loaded."""
    text = (
        b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."
        b" Make sure that the latest NVIDIA driver is installed and running.\n\n"
    )
    return NvidiaSmi(message=text, exit_code=9)


def no_devices() -> NvidiaSmi:
    """A driver without a GPU that it can use."""
    return NvidiaSmi(message=b"No devices were found\n", exit_code=6)


def install(folder: Path, tool: NvidiaSmi) -> Path:
    """Write the stand-in into a folder that is meant for PATH; returns its path."""
    return install_script(folder, NAME, _script(tool))


def _script(tool: NvidiaSmi) -> Iterator[str]:
    yield from prepare(tool.ending)
    yield from log_call(tool.log)
    yield from delay(tool.delay_seconds)
    if tool.stderr:
        yield emit(tool.stderr, stream=2)
    if tool.message is None:
        yield from _answering(tool.rows)
    else:
        yield emit(tool.message)
    yield from finish(tool.ending, tool.exit_code, tool.flood)


def _answering(rows: Sequence[SmiGpu | bytes]) -> Iterator[str]:
    for number, row in enumerate(rows):
        if isinstance(row, SmiGpu):
            yield from _gpu_function(number, row)
    yield from _LOOKUP
    yield "list_all() {"
    yield from (f"  {_list_command(row)}" for row in rows)
    yield "  :\n}\nquery_all() {"
    yield from (f"  {_query_command(number, row)}" for number, row in enumerate(rows))
    yield "  :\n}"
    yield _MAIN.replace("@FIELDS@", "|".join([*_fields(), *_ALIASES]))


def _fields() -> list[str]:
    return list(SmiGpu(0, "").answers())


def _gpu_function(number: int, gpu: SmiGpu) -> Iterator[str]:
    """A function that sets the value of a field; a case per GPU keeps 256 of them fast."""
    yield f"gpu_{number}() {{ case $1 in"
    for name, value in gpu.answers().items():
        # A bracketed answer such as [N/A] never carries a unit.
        unit = "" if value.startswith("[") or name not in _UNITS else f' unit=" {_UNITS[name]}"'
        yield f"{name}) value={shlex.quote(value)}{unit};;"
    yield "esac; }"


def _list_command(row: SmiGpu | bytes) -> str:
    if isinstance(row, bytes):
        return emit(row)
    lines = [f"GPU {row.index}: {row.name} (UUID: {row.uuid})"]
    for slot, instance in enumerate(row.instances):
        lines.append(f"  MIG {instance.profile:<11} Device {slot:>2}: (UUID: {instance.uuid})")
    return emit("".join(f"{line}\n" for line in lines).encode("utf-8"))


def _query_command(number: int, row: SmiGpu | bytes) -> str:
    return emit(row) if isinstance(row, bytes) else f"answer gpu_{number}"


_LOOKUP = [
    # Prints one row: the fields of one GPU, or with header_of the columns' names.
    "answer() {",
    "  row=",
    "  for name in $fields; do",
    "    unit=",
    '    "$1" "$name"',
    '    row="$row${row:+, }$value${units:+$unit}"',
    "  done",
    """  printf '%s\\n' "$row\"""",
    "}",
    "header_of() {",
    "  value=$1",
    "  case $1 in",
    *(f"{name}) unit=' [{unit}]';;" for name, unit in _UNITS.items()),
    "esac; }",
]

# "[ -n ]" and the like are built into the shell, so an answer starts no other program.
_MAIN = """\
set -f
header=yes units=yes query= format=
for option; do
  case $option in
    -L|--list-gpus) list_all; query=done; break;;
    --query-gpu=*) query=${option#*=};;
    --format=*) format=${option#*=};;
    *) printf 'Invalid combination of input arguments. Please run '\\''nvidia-smi -h'\\'' for help.\\n\\n'; exit 2;;
  esac
done
if [ "$query" != done ]; then
  case ,$format, in *,noheader,*) header=;; esac
  case ,$format, in *,nounits,*) units=;; esac
  case ,$format, in
    *,csv,*) ;;
    *) printf 'The stand-in answers queries with --format=csv alone.\\n'; exit 2;;
  esac
  fields= IFS=', '
  for name in $query; do
    case $name in
      @FIELDS@) ;;
      *) printf 'Field "%s" is not a valid field to query.\\n\\n' "$name"; exit 2;;
    esac
    case $name in
      gpu_name) name=name;;
      gpu_uuid) name=uuid;;
      gpu_bus_id) name=pci.bus_id;;
    esac
    fields="$fields $name"
  done
  IFS=' '
  [ -n "$header" ] && answer header_of
  query_all
fi"""
