"""What a scenario file says, as immutable values that render its text.

The grammar is described in README.md beside this module; ``render`` is its only other author.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .faults import Fault, Window

SCENARIO_VARIABLE = "STANDIN_NVML_SCENARIO"

Unsupported = Literal["unsupported"]
Lifetime = Literal["volatile", "aggregate"]
ErrorKind = Literal["corrected", "uncorrected"]
Place = Literal["l1", "l2", "dram", "registers", "texture", "texture-shm", "cbu", "sram", "unplaced"]


@dataclass(frozen=True)
class Process:
    """A process on a device; ``memory_mib`` None is what the driver does not know."""

    pid: int
    memory_mib: int | None = 100
    graphics: bool = False


@dataclass(frozen=True)
class MigInstance:
    """A MIG instance; ``slot`` None is the next free one."""

    uuid: str
    gpu_instance: int
    compute_instance: int = 0
    slot: int | None = None
    name: str | None = None
    nodes: tuple[str, ...] = ()
    processes: tuple[Process, ...] = ()


@dataclass(frozen=True)
class EccCount:
    """One counter; ``unplaced`` errors are part of the total alone."""

    lifetime: Lifetime
    kind: ErrorKind
    count: int
    place: Place = "unplaced"


@dataclass(frozen=True)
class RemappedRows:
    """How far the GPU has replaced broken memory, and whether it failed to."""

    corrected: int = 0
    uncorrected: int = 0
    pending: bool = False
    failed: bool = False


@dataclass(frozen=True)
class Gpu:
    """One GPU; what is None is left to the library's default."""

    uuid: str
    minor: int | Unsupported | None = None
    pci: str | None = None
    name: str | None = None
    nodes: tuple[str, ...] = ()
    memory_mib: int | None = None
    memory_used_mib: int = 0
    persistence: bool = False
    mig_mode: bool | Unsupported | None = None
    mig_mode_pending: bool | None = None
    mig_slots: int | None = None
    ecc: tuple[EccCount, ...] | Unsupported = ()
    remapped_rows: RemappedRows | Unsupported | None = None
    retired_pages_pending: bool | Unsupported | None = None
    temperature: int | Unsupported | None = None
    utilization: tuple[int, int] | Unsupported | None = None
    power_milliwatts: int | Unsupported | None = None
    processes: tuple[Process, ...] = ()
    instances: tuple[MigInstance, ...] = ()


@dataclass(frozen=True)
class Scenario:
    """A host: its GPUs in index order, and what goes wrong."""

    gpus: tuple[Gpu, ...] = ()
    faults: tuple[Fault, ...] = ()
    no_gpus: Window | bool = False
    open_nodes: Literal["hide", "no-permission"] | None = None
    driver: str | None = None
    nvml: str | None = None
    cuda: int | None = None
    state: Path | None = None


def gpus(count: int, *, node: str | None = None) -> tuple[Gpu, ...]:
    """So many GPUs, each telling where it stands: ``node`` may be ``"/dev/nvidia%d"``."""
    return tuple(
        Gpu(f"GPU-{index:08x}-0000-4000-8000-000000000000", nodes=(node % index,) if node else ())
        for index in range(count)
    )


def render(scenario: Scenario) -> str:
    """The scenario file's text."""
    return "".join(f"{line}\n" for line in _scenario_lines(scenario))


def write(scenario: Scenario, path: Path) -> Path:
    """Write the file and forget the initialisations that were counted for an earlier one."""
    path.write_text(render(scenario), encoding="utf-8")
    state = scenario.state or path.with_name(path.name + ".state")
    state.unlink(missing_ok=True)
    return path


def environment(library: Path, scenario: Path | None, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which a process finds the library (a file) and the scenario."""
    env = dict(os.environ if base is None else base)
    folders = [str(library.parent), *filter(None, [env.get("LD_LIBRARY_PATH")])]
    env["LD_LIBRARY_PATH"] = os.pathsep.join(folders)
    if scenario is not None:
        env[SCENARIO_VARIABLE] = str(scenario)
    return env


def _scenario_lines(scenario: Scenario) -> Iterator[str]:
    yield from _optional("driver", scenario.driver)
    yield from _optional("nvml", scenario.nvml)
    yield from _optional("cuda", scenario.cuda)
    yield from _optional("state", scenario.state)
    yield from _optional("open-nodes", scenario.open_nodes)
    if scenario.no_gpus:
        window = scenario.no_gpus if isinstance(scenario.no_gpus, Window) else None
        yield f"no-gpus {window.render()}" if window else "no-gpus"
    yield from (fault.render() for fault in scenario.faults)
    for gpu in scenario.gpus:
        yield f"gpu {gpu.uuid}"
        yield from (f"  {line}" for line in _gpu_lines(gpu))


def _gpu_lines(gpu: Gpu) -> Iterator[str]:
    yield from _optional("minor", gpu.minor)
    yield from _optional("pci", gpu.pci)
    yield from _shared_lines(gpu.name, gpu.nodes, gpu.processes)
    if gpu.memory_mib is not None:
        yield f"memory {gpu.memory_mib} {gpu.memory_used_mib}"
    if gpu.persistence:
        yield "persistence yes"
    if gpu.mig_mode is not None:
        pending = "" if gpu.mig_mode_pending is None else f" {_word(gpu.mig_mode_pending)}"
        yield f"mig-mode {_word(gpu.mig_mode)}{pending}"
    yield from _optional("mig-slots", gpu.mig_slots)
    yield from _health_lines(gpu)
    yield from _optional("temperature", gpu.temperature)
    yield from _optional("utilization", gpu.utilization)
    yield from _optional("power", gpu.power_milliwatts)
    for instance in gpu.instances:
        yield f"mig {instance.uuid} {instance.gpu_instance} {instance.compute_instance}"
        yield from (f"  {line}" for line in _optional("slot", instance.slot))
        yield from (f"  {line}" for line in _shared_lines(instance.name, instance.nodes, instance.processes))


def _shared_lines(name: str | None, nodes: Sequence[str], processes: Sequence[Process]) -> Iterator[str]:
    yield from _optional("name", name)
    yield from (f"node {node}" for node in nodes)
    for process in processes:
        memory = "unknown" if process.memory_mib is None else process.memory_mib
        yield f"process {process.pid} {memory} {'graphics' if process.graphics else 'compute'}"


def _health_lines(gpu: Gpu) -> Iterator[str]:
    if gpu.ecc == "unsupported":
        yield "ecc unsupported"
    else:
        yield from (f"ecc {ecc.lifetime} {ecc.kind} {ecc.place} {ecc.count}" for ecc in gpu.ecc)
    if isinstance(gpu.remapped_rows, RemappedRows):
        rows = gpu.remapped_rows
        counts = f"{rows.corrected} {rows.uncorrected}"
        yield f"remapped-rows {counts} {_word(rows.pending)} {_word(rows.failed)}"
    else:
        yield from _optional("remapped-rows", gpu.remapped_rows)
    yield from _optional("retired-pages-pending", gpu.retired_pages_pending)


def _optional(word: str, value: object) -> Iterator[str]:
    if value is not None:
        yield f"{word} {_word(value)}"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return str(value)
