"""The stand-in answers the real pynvml's questions about health, memory and processes."""

from __future__ import annotations

import pytest

from .nvml.probe import Probe
from .nvml.scenario import EccCount, Gpu, MigInstance, Process, RemappedRows, Scenario

pytestmark = pytest.mark.timeout(60)

A = "GPU-aaaaaaaa-0000-4000-8000-000000000000"
MIG_1 = "MIG-11111111-0000-4000-8000-000000000000"
MIG_2 = "MIG-22222222-0000-4000-8000-000000000000"


def reading(nvml: Probe, call: str, gpu: Gpu) -> object:
    return nvml.ask(Scenario((gpu,)), f"attempt(nvml.{call}, gpu(0))")


def test_ecc_errors_add_up_over_places(nvml: Probe) -> None:
    ecc = (
        EccCount("volatile", "uncorrected", 2, "dram"),
        EccCount("volatile", "uncorrected", 3, "sram"),
        EccCount("volatile", "uncorrected", 4),
        EccCount("aggregate", "corrected", 50),
    )
    asked = "[[nvml.nvmlDeviceGetTotalEccErrors(gpu(0), kind, life) for kind in (0, 1)] for life in (0, 1)]"
    assert nvml.ask(Scenario((Gpu(A, ecc=ecc),)), asked) == [[0, 9], [50, 0]]
    asked = "[nvml.nvmlDeviceGetMemoryErrorCounter(gpu(0), 1, 0, place) for place in (1, 2, 7)]"
    assert nvml.ask(Scenario((Gpu(A, ecc=ecc),)), asked) == [0, 2, 3]


def test_ecc_may_be_unsupported(nvml: Probe) -> None:
    asked = "[attempt(nvml.nvmlDeviceGetTotalEccErrors, gpu(0), 1, 0), attempt(nvml.nvmlDeviceGetEccMode, gpu(0))]"
    answer = nvml.ask(Scenario((Gpu(A, ecc="unsupported"),)), asked)
    assert answer == ["NVMLError_NotSupported"] * 2


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (None, [0, 0, 0, 0]),
        (RemappedRows(1, 2, pending=True), [1, 2, 1, 0]),
        (RemappedRows(failed=True), [0, 0, 0, 1]),
        ("unsupported", "NVMLError_NotSupported"),
    ],
)
def test_remapped_rows(nvml: Probe, rows: RemappedRows | None, expected: object) -> None:
    assert reading(nvml, "nvmlDeviceGetRemappedRows", Gpu(A, remapped_rows=rows)) == expected


@pytest.mark.parametrize(
    ("call", "gpu", "expected"),
    [
        ("nvmlDeviceGetRetiredPagesPendingStatus", Gpu(A), 0),
        ("nvmlDeviceGetRetiredPagesPendingStatus", Gpu(A, retired_pages_pending=True), 1),
        (
            "nvmlDeviceGetRetiredPagesPendingStatus",
            Gpu(A, retired_pages_pending="unsupported"),
            "NVMLError_NotSupported",
        ),
        ("nvmlDeviceGetPersistenceMode", Gpu(A), 0),
        ("nvmlDeviceGetPersistenceMode", Gpu(A, persistence=True), 1),
        ("nvmlDeviceGetPowerUsage", Gpu(A, power_milliwatts=412_345), 412_345),
        ("nvmlDeviceGetPowerUsage", Gpu(A, power_milliwatts="unsupported"), "NVMLError_NotSupported"),
    ],
)
def test_readings_are_those_of_the_file(nvml: Probe, call: str, gpu: Gpu, expected: object) -> None:
    assert reading(nvml, call, gpu) == expected


def test_temperature_and_utilisation_are_those_of_the_file(nvml: Probe) -> None:
    setup = ["use = nvml.nvmlDeviceGetUtilizationRates(gpu(0))"]
    asked = "[nvml.nvmlDeviceGetTemperature(gpu(0), nvml.NVML_TEMPERATURE_GPU), use.gpu, use.memory]"
    assert nvml.ask(Scenario((Gpu(A, temperature=81, utilization=(97, 40)),)), asked, setup=setup) == [81, 97, 40]


def test_memory_is_told_in_both_versions(nvml: Probe) -> None:
    setup = ["one = nvml.nvmlDeviceGetMemoryInfo(gpu(0))"]
    setup += ["two = nvml.nvmlDeviceGetMemoryInfo(gpu(0), nvml.nvmlMemory_v2)"]
    asked = "[m >> 20 for m in (one.total, one.used, one.free, two.total, two.used, two.free, two.reserved)]"
    answer = nvml.ask(Scenario((Gpu(A, memory_mib=80, memory_used_mib=30),)), asked, setup=setup)
    assert answer == [80, 30, 50, 80, 30, 50, 0]


PROCESSES = "[[p.pid, p.usedGpuMemory] for p in nvml.nvmlDeviceGet%sRunningProcesses_v%d(gpu(0))]"


@pytest.mark.parametrize("version", [2, 3])
def test_processes_are_listed_by_kind(nvml: Probe, version: int) -> None:
    gpu = Gpu(A, processes=(Process(11, 2), Process(12, None), Process(13, 4, graphics=True)))
    compute = nvml.ask(Scenario((gpu,)), PROCESSES % ("Compute", version))
    graphics = nvml.ask(Scenario((gpu,)), PROCESSES % ("Graphics", version))
    assert (compute, graphics) == ([[11, 2 << 20], [12, None]], [[13, 4 << 20]])


def test_an_idle_gpu_lists_no_process(nvml: Probe) -> None:
    assert nvml.ask(Scenario((Gpu(A),)), PROCESSES % ("Compute", 3)) == []


def test_a_gpu_lists_the_processes_of_its_instances_with_their_ids(nvml: Probe) -> None:
    setup = ["def rows(device):"]
    setup += ["    found = nvml.nvmlDeviceGetComputeRunningProcesses(device)"]
    setup += ["    return [[p.pid, p.gpuInstanceId, p.computeInstanceId] for p in found]"]
    asked = "[rows(gpu(0)), rows(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 1))]"
    instances = (
        MigInstance(MIG_1, 1, processes=(Process(21),)),
        MigInstance(MIG_2, 2, 7, processes=(Process(22),)),
    )
    answer = nvml.ask(Scenario((Gpu(A, instances=instances),)), asked, setup=setup)
    assert answer == [[[21, 1, 0], [22, 2, 7]], [[22, 2, 7]]]
