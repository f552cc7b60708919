"""The NVML backend: the real command and the real pynvml over a stand-in library."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.standins.nvml import scenario as nvml
from tests.standins.nvml.build import build
from tests.standins.nvml.faults import Fault, crash, fail, first_inits, first_ms, hang, sleep
from tests.support.script import MODULE, Result, run

Ask = Callable[..., Result]


@pytest.fixture
def ask(nvml_library: Path, tmp_path: Path) -> Ask:
    """Run the command on a host that a scenario describes."""

    def call(scenario: nvml.Scenario, *words: str, library: Path = nvml_library, **env: str) -> Result:
        path = nvml.write(scenario, tmp_path / "scenario")
        return run(*words, program=MODULE, env=nvml.environment(library, path, env))

    return call


def gpus(count: int, *faults: Fault, **values: Any) -> nvml.Scenario:
    return nvml.Scenario(gpus=nvml.gpus(count), faults=faults, **values)


def listed(result: Result) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    found: list[dict[str, Any]] = json.loads(result.out)["gpus"]
    return found


def test_gpus_are_handed_out_by_index(ask: Ask) -> None:
    assert ask(gpus(4), "2", "--backend", "nvml").out == "0,1\n"
    assert ask(gpus(4), "5", "--backend", "nvml").code == 69


def test_auto_prefers_nvml(ask: Ask) -> None:
    assert json.loads(ask(gpus(1), "inventory", "--json").out)["backend"] == "nvml"


def test_what_is_known_of_each_gpu(ask: Ask) -> None:
    one = nvml.Gpu("GPU-aa", minor=7, pci="00010000:C1:02.3", name="NVIDIA H200")
    assert listed(ask(nvml.Scenario(gpus=(one,)), "inventory", "--json", "--backend", "nvml")) == [
        {
            "index": "0",
            "uuid": "GPU-aa",
            "pci_address": "10000:c1:02.3",
            "name": "NVIDIA H200",
            "vendor": "nvidia",
            "node": "/dev/nvidia7",
            "fault": None,
            "visible": True,
        }
    ]


def test_a_gpu_without_a_minor_can_be_used_and_has_no_node(ask: Ask) -> None:
    one = nvml.Gpu("GPU-aa", minor="unsupported")
    (found,) = listed(ask(nvml.Scenario(gpus=(one,)), "inventory", "--json", "--backend", "nvml"))
    assert found["node"] is None
    assert ask(nvml.Scenario(gpus=(one,)), "1", "--backend", "nvml").out == "0\n"


CALLS = [
    "nvmlDeviceGetHandleByIndex_v2",
    "nvmlDeviceGetUUID",
    "nvmlDeviceGetPciInfo_v3",
    "nvmlDeviceGetName",
    "nvmlDeviceGetMinorNumber",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetRemappedRows",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("error", ["NVML_ERROR_GPU_IS_LOST", "NVML_ERROR_UNKNOWN", "NVML_ERROR_NO_PERMISSION"])
def test_one_lost_gpu_does_not_block_the_others(ask: Ask, call: str, error: str) -> None:
    result = ask(gpus(3, fail(call, error, 1)), "2", "--backend", "nvml")
    assert (result.code, result.out) == (0, "0,2\n")
    assert "GPU 1 is left out" in result.err
    refused = ask(gpus(3, fail(call, error, 1)), "3", "--backend", "nvml")
    assert refused.code == 69
    assert "GPU 1 is left out" in refused.err


@pytest.mark.parametrize("call", ["nvmlDeviceGetMinorNumber", "nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows"])
def test_what_a_gpu_does_not_support_is_no_fault(ask: Ask, call: str) -> None:
    result = ask(gpus(2, fail(call, "NVML_ERROR_NOT_SUPPORTED")), "2", "--backend", "nvml")
    assert (result.code, result.out, result.err) == (0, "0,1\n", "")


def test_an_old_driver_that_lacks_functions_is_enough(ask: Ask, tmp_path: Path) -> None:
    missing = ("nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows", "nvmlDeviceGetMaxMigDeviceCount")
    library = build(tmp_path / "old", omit=missing)
    assert ask(gpus(2), "2", "--backend", "nvml", library=library).out == "0,1\n"


def test_a_gpu_whose_rows_could_not_be_remapped_is_not_handed_out(ask: Ask) -> None:
    good, bad = nvml.gpus(2)
    bad = nvml.Gpu(bad.uuid, remapped_rows=nvml.RemappedRows(failed=True))
    host = nvml.Scenario(gpus=(bad, good))
    assert ask(host, "1", "--backend", "nvml").out == "1\n"
    refused = ask(host, "2", "--backend", "nvml")
    assert refused.code == 69
    assert "2 asked for, 2 seen, 1 healthy" in refused.err
    assert "row remapping failed" in ask(host, "inventory", "--backend", "nvml").out


def test_corrected_errors_are_no_fault(ask: Ask) -> None:
    one = nvml.Gpu(
        "GPU-aa",
        remapped_rows=nvml.RemappedRows(corrected=3, uncorrected=1, pending=True),
        ecc=(nvml.EccCount("aggregate", "corrected", 9), nvml.EccCount("aggregate", "uncorrected", 1)),
    )
    assert ask(nvml.Scenario(gpus=(one,)), "1", "--backend", "nvml").out == "0\n"


def mig_host() -> nvml.Scenario:
    instances = (nvml.MigInstance("MIG-aa", 1, slot=0), nvml.MigInstance("MIG-bb", 2, slot=3))
    whole = nvml.gpus(3)
    split = nvml.Gpu(whole[1].uuid, mig_mode=True, instances=instances)
    return nvml.Scenario(gpus=(whole[0], split, nvml.Gpu(whole[2].uuid, mig_mode=True)))


def test_mig_instances_stand_in_place_of_their_gpu(ask: Ask) -> None:
    found = listed(ask(mig_host(), "inventory", "--json", "--backend", "nvml"))
    assert [(gpu["index"], gpu["uuid"][:6]) for gpu in found] == [("0", "GPU-00"), ("1:0", "MIG-aa"), ("1:3", "MIG-bb")]
    assert ask(mig_host(), "3", "--backend", "nvml").out == "0,1:0,1:3\n"
    assert ask(mig_host(), "2", "--backend", "nvml", "--id", "uuid", CUDA_VISIBLE_DEVICES="MIG-bb,MIG-aa").out == (
        "MIG-aa,MIG-bb\n"
    )
    refused = ask(mig_host(), "4", "--backend", "nvml")
    assert refused.code == 69
    assert "GPU 2 is left out: MIG is on and it has no instances" in refused.err


def test_mig_instances_are_held_like_gpus(ask: Ask, tmp_path: Path) -> None:
    words = ("--backend", "nvml", "--ledger", str(tmp_path / "ledger"))
    assert ask(mig_host(), "2", *words).out == "0,1:0\n"
    assert ask(mig_host(), "1", *words, "--resource", "b").out == "1:3\n"
    assert ask(mig_host(), "1", *words, "--resource", "c").code == 69


def test_a_driver_library_mismatch_has_its_own_mend(ask: Ask) -> None:
    host = gpus(1, fail("nvmlInit_v2", "NVML_ERROR_LIB_RM_VERSION_MISMATCH"))
    for words in (("--backend", "nvml"), ()):
        result = ask(host, "1", *words)
        assert (result.code, result.out) == (71, "")
        assert "mismatch" in result.err
        assert "reboot" in result.err


@pytest.mark.parametrize("error", ["NVML_ERROR_DRIVER_NOT_LOADED", "NVML_ERROR_NO_PERMISSION", "NVML_ERROR_UNKNOWN"])
def test_a_driver_that_refuses_is_named(ask: Ask, error: str) -> None:
    result = ask(gpus(1, fail("nvmlInit_v2", error)), "1", "--backend", "nvml")
    assert (result.code, result.out) == (71, "")
    assert result.err.startswith("flink-gpu-discovery: NVML: ")


def test_auto_says_what_it_tried_and_why_each_failed(ask: Ask) -> None:
    result = ask(gpus(1, fail("nvmlInit_v2", "NVML_ERROR_DRIVER_NOT_LOADED")), "1")
    assert result.code == 71
    for part in ("NVML: Driver Not Loaded", "nvidia-smi is not in PATH", "kfd", "rocm-smi is not in PATH"):
        assert part in result.err


@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetCount_v2", "nvmlDeviceGetUUID"])
@pytest.mark.parametrize("hard", [False, True], ids=["interruptible", "deaf to signals"])
def test_a_hanging_driver_ends_before_the_deadline_and_records_nothing(
    ask: Ask, tmp_path: Path, call: str, hard: bool
) -> None:
    ledger = tmp_path / "ledger"
    start = time.monotonic()
    host = gpus(2, hang(call, hard=hard))
    result = ask(host, "1", "--backend", "nvml", "--deadline", "1.5", "--ledger", str(ledger))
    assert (result.code, result.out) == (75, "")
    assert "NVML did not answer in time" in result.err
    assert time.monotonic() - start < 3
    assert not ledger.exists()
    assert not ledger.with_name("ledger.lock").exists()


def test_a_slow_driver_is_waited_for(ask: Ask) -> None:
    assert ask(gpus(2, sleep("nvmlInit_v2", 1500)), "2", "--backend", "nvml").out == "0,1\n"


@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlDeviceGetName"])
def test_a_crash_of_the_library_is_an_error_not_a_crash(ask: Ask, call: str) -> None:
    result = ask(gpus(2, crash(call)), "1", "--backend", "nvml")
    assert (result.code, result.out) == (71, "")
    assert "ended early with status -11" in result.err


def test_no_gpu_for_a_moment_is_asked_again(ask: Ask) -> None:
    assert ask(gpus(2, no_gpus=first_inits(3)), "2", "--backend", "nvml").out == "0,1\n"
    result = ask(gpus(2, no_gpus=True), "2", "--backend", "nvml")
    assert result.code == 69
    assert "2 asked for, 0 seen" in result.err


def test_waiting_asks_for_the_gpus_again(ask: Ask) -> None:
    """A driver that takes longer to come back than the moment that every call grants it."""
    late = gpus(2, no_gpus=first_ms(3000))
    assert ask(late, "2", "--backend", "nvml").code == 69
    assert ask(late, "2", "--backend", "nvml", "--wait", "6").out == "0,1\n"


def test_an_index_that_moved_is_followed_by_uuid(ask: Ask, tmp_path: Path) -> None:
    words = ("--backend", "nvml", "--ledger", str(tmp_path / "ledger"))
    first, second, third = nvml.gpus(3)
    assert ask(nvml.Scenario(gpus=(first, second, third)), "2", *words).out == "0,1\n"
    assert ask(nvml.Scenario(gpus=(second, third, first)), "2", *words).out == "0,2\n"
    assert ask(nvml.Scenario(gpus=(second, third, first)), "1", *words, "--resource", "b").out == "1\n"
    fell_off = ask(nvml.Scenario(gpus=(second, third)), "2", *words)
    assert fell_off.code == 69
    assert first.uuid in fell_off.err


def test_a_library_without_the_binding_is_said_to_be_so() -> None:
    result = run("1", "--backend", "nvml")  # the script itself, without nvidia-ml-py beside it
    assert result.code == 71
    assert "NVML: pynvml is not importable" in result.err
