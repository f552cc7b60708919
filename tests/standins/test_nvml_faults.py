"""What a scenario says goes wrong does go wrong in the real pynvml, and nothing else does."""

from __future__ import annotations

import fcntl
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .nvml.faults import Fault, crash, fail, first_inits, first_ms, hang, sleep
from .nvml.probe import Probe
from .nvml.scenario import Gpu, MigInstance, Scenario, gpus

pytestmark = pytest.mark.timeout(60)

MIG = "MIG-11111111-0000-4000-8000-000000000000"
INIT = "print(attempt(nvml.nvmlInit))"
INDEXES = "[attempt(lambda: nvml.nvmlDeviceGetIndex(gpu(i))) for i in range(nvml.nvmlDeviceGetCount())]"


def host(*faults: Fault, count: int = 3) -> Scenario:
    return Scenario(gpus(count), faults)


def init_result(nvml: Probe, scenario: Scenario) -> str:
    return nvml.run(nvml.write(scenario), INIT).stdout.strip()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        ("NVML_ERROR_LIB_RM_VERSION_MISMATCH", "NVMLError_LibRmVersionMismatch"),
        ("NVML_ERROR_DRIVER_NOT_LOADED", "NVMLError_DriverNotLoaded"),
        ("NVML_ERROR_NO_PERMISSION", "NVMLError_NoPermission"),
        ("NVML_ERROR_UNKNOWN", "NVMLError_Unknown"),
    ],
)
@pytest.mark.parametrize("call", ["nvmlInit_v2", "nvmlInitWithFlags"])
def test_initialisation_fails_as_told_under_either_name(nvml: Probe, call: str, error: str, expected: str) -> None:
    assert init_result(nvml, host(fail(call, error))) == expected


def test_without_faults_initialisation_succeeds(nvml: Probe) -> None:
    assert init_result(nvml, host()) == "None"


def test_one_lost_gpu_leaves_the_others(nvml: Probe) -> None:
    scenario = host(fail("nvmlDeviceGetHandleByIndex_v2", "NVML_ERROR_GPU_IS_LOST", 1))
    assert nvml.ask(scenario, INDEXES) == [0, "NVMLError_GpuIsLost", 2]


def test_a_fault_without_a_gpu_befalls_all(nvml: Probe) -> None:
    scenario = host(fail("nvmlDeviceGetIndex", "NVML_ERROR_UNKNOWN"))
    assert nvml.ask(scenario, INDEXES) == ["NVMLError_Unknown"] * 3


def test_a_gpu_may_be_named_by_its_uuid(nvml: Probe) -> None:
    scenario = host(fail("nvmlDeviceGetIndex", "NVML_ERROR_UNKNOWN", gpus(3)[2].uuid))
    assert nvml.ask(scenario, INDEXES) == [0, 1, "NVMLError_Unknown"]


def test_a_star_stands_for_every_call(nvml: Probe) -> None:
    scenario = host(fail("*", "NVML_ERROR_GPU_IS_LOST", 0))
    asked = f"[{INDEXES}, attempt(nvml.nvmlDeviceGetHandleByUUID, {gpus(1)[0].uuid!r})]"
    assert nvml.ask(scenario, asked) == [["NVMLError_GpuIsLost", 1, 2], "NVMLError_GpuIsLost"]


def test_a_fault_of_a_gpu_befalls_its_instances_but_not_the_other_way_round(nvml: Probe) -> None:
    setup = ["def migs():", "    return nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 0)"]
    asked = "[attempt(lambda: nvml.nvmlDeviceGetUUID(migs())), attempt(lambda: nvml.nvmlDeviceGetUUID(gpu(0)))]"
    gpu = Gpu("GPU-0", instances=(MigInstance(MIG, 1),))
    of_gpu = Scenario((gpu,), (fail("nvmlDeviceGetUUID", "NVML_ERROR_UNKNOWN", 0),))
    of_instance = Scenario((gpu,), (fail("nvmlDeviceGetUUID", "NVML_ERROR_UNKNOWN", MIG),))
    assert nvml.ask(of_gpu, asked, setup=setup) == ["NVMLError_Unknown"] * 2
    assert nvml.ask(of_instance, asked, setup=setup) == ["NVMLError_Unknown", "GPU-0"]


def test_targets_keep_their_place_when_a_gpu_is_hidden(nvml: Probe) -> None:
    hidden = Gpu("GPU-hidden", nodes=("/proc/sys/vm/compact_memory",))
    faults = (fail("nvmlDeviceGetUUID", "NVML_ERROR_UNKNOWN", 1),)
    scenario = Scenario((hidden, Gpu("GPU-1"), Gpu("GPU-2")), faults, open_nodes="hide")
    asked = "[attempt(nvml.nvmlDeviceGetUUID, gpu(i)) for i in (0, 1)]"
    assert nvml.ask(scenario, asked) == ["NVMLError_Unknown", "GPU-2"]


def test_shutdown_may_fail(nvml: Probe) -> None:
    scenario = host(fail("nvmlShutdown", "NVML_ERROR_UNKNOWN"))
    assert nvml.ask(scenario, "attempt(nvml.nvmlShutdown)") == "NVMLError_Unknown"


def is_running_after(process: subprocess.Popen[str], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def test_a_hanging_call_never_returns_but_can_be_terminated(nvml: Probe) -> None:
    process = nvml.start(nvml.write(host(hang("nvmlInit_v2"))), INIT)
    try:
        assert is_running_after(process, 0.7)
        process.terminate()
        assert process.wait(5) == -signal.SIGTERM
    finally:
        process.kill()
        process.communicate()


def wait_until_sigterm_is_blocked(pid: int) -> None:
    status = Path(f"/proc/{pid}/status")
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        blocked = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("SigBlk"))
        if int(blocked.split()[1], 16) >> (signal.SIGTERM - 1) & 1:
            return
        time.sleep(0.02)
    raise AssertionError("the call did not block signals")


def test_a_hard_hang_heeds_no_signal_but_kill(nvml: Probe) -> None:
    process = nvml.start(nvml.write(host(hang("nvmlInit_v2", hard=True))), INIT)
    try:
        wait_until_sigterm_is_blocked(process.pid)
        process.terminate()
        assert is_running_after(process, 0.5)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == -signal.SIGKILL


def test_a_hang_on_one_gpu_leaves_other_threads_and_gpus_usable(nvml: Probe) -> None:
    code = """
import os, threading
nvml.nvmlInit()
threading.Thread(target=lambda: nvml.nvmlDeviceGetUUID(gpu(2)), daemon=True).start()
print([nvml.nvmlDeviceGetUUID(gpu(i))[-4:] for i in (0, 1)], flush=True)
os._exit(3)
"""
    result = nvml.run(nvml.write(host(hang("nvmlDeviceGetUUID", 2))), code)
    assert (result.stdout.strip(), result.returncode) == ("['0000', '0000']", 3)


def test_a_hanging_initialisation_leaves_other_threads_running(nvml: Probe) -> None:
    code = """
import os, threading
thread = threading.Thread(target=nvml.nvmlInit, daemon=True)
thread.start()
thread.join(0.5)
print(thread.is_alive(), attempt(nvml.nvmlDeviceGetCount), flush=True)
os._exit(0)
"""
    result = nvml.run(nvml.write(host(hang("nvmlInit_v2"))), code)
    assert result.stdout.strip() == "True NVMLError_Uninitialized"


def test_a_slow_call_takes_longer_by_what_is_told(nvml: Probe) -> None:
    setup = ["import time", "start = time.monotonic()", "uuids()"]
    spent = nvml.ask(host(sleep("nvmlDeviceGetUUID", 200)), "time.monotonic() - start", setup=setup)
    assert isinstance(spent, float)
    assert 0.6 <= spent < 5


def test_a_crash_is_a_segmentation_fault(nvml: Probe) -> None:
    result = nvml.run(nvml.write(host(crash("nvmlDeviceGetCount_v2"))), "nvml.nvmlInit(); uuids()")
    assert result.returncode == -signal.SIGSEGV


# --- Windows


def test_a_driver_that_comes_up_shows_no_gpu_at_first_then_all(nvml: Probe) -> None:
    file = nvml.write(Scenario(gpus(2), no_gpus=first_inits(2)))
    assert [nvml.evaluate(file, "nvml.nvmlDeviceGetCount()") for _ in range(4)] == [0, 0, 2, 2]


def test_initialisations_of_one_process_count_too(nvml: Probe) -> None:
    setup = ["def again():", "    nvml.nvmlShutdown()", "    nvml.nvmlInit()", "    return len(uuids())"]
    scenario = Scenario(gpus(2), no_gpus=first_inits(2))
    assert nvml.ask(scenario, "[len(uuids()), again(), again()]", setup=setup) == [0, 0, 2]


def test_an_initialisation_within_a_session_is_not_counted(nvml: Probe) -> None:
    file = nvml.write(Scenario(gpus(1), no_gpus=first_inits(2)))
    twice = ["nvml.nvmlInit()"]
    assert [nvml.evaluate(file, "len(uuids())", setup=twice) for _ in range(3)] == [0, 0, 1]


def test_what_is_visible_is_settled_at_initialisation(nvml: Probe) -> None:
    setup = ["import time", "first = len(uuids())", "time.sleep(0.5)", "later = len(uuids())"]
    setup += ["nvml.nvmlShutdown()", "nvml.nvmlInit()"]
    scenario = Scenario(gpus(2), no_gpus=first_ms(400))
    assert nvml.ask(scenario, "[first, later, len(uuids())]", setup=setup) == [0, 0, 2]


def test_a_window_of_time_opens_with_the_first_initialisation(nvml: Probe) -> None:
    file = nvml.write(Scenario(gpus(1), no_gpus=first_ms(1500)))
    time.sleep(0.1)
    start = time.monotonic()
    assert nvml.evaluate(file, "len(uuids())") == 0
    while nvml.evaluate(file, "len(uuids())") == 0:
        assert time.monotonic() - start < 10
    assert time.monotonic() - start > 1.4


def test_a_host_may_never_show_a_gpu(nvml: Probe) -> None:
    assert nvml.ask(Scenario(gpus(2), no_gpus=True), "uuids()") == []


def test_any_fault_may_have_a_window(nvml: Probe) -> None:
    fault = fail("nvmlInit_v2", "NVML_ERROR_DRIVER_NOT_LOADED", window=first_inits(1))
    file = nvml.write(host(fault))
    assert [nvml.run(file, INIT).stdout.strip() for _ in range(2)] == ["NVMLError_DriverNotLoaded", "None"]


def test_writing_a_scenario_again_starts_its_counts_again(nvml: Probe) -> None:
    scenario = Scenario(gpus(1), no_gpus=first_inits(1))
    assert [nvml.ask(scenario, "len(uuids())") for _ in range(2)] == [0, 0]


def test_without_windows_no_state_file_is_written(nvml: Probe) -> None:
    file = nvml.write(host())
    nvml.evaluate(file, "uuids()")
    assert [entry.name for entry in file.parent.iterdir()] == [file.name]


def test_the_state_file_may_lie_elsewhere(nvml: Probe) -> None:
    state = nvml.folder / "elsewhere"
    file = nvml.write(Scenario(gpus(1), no_gpus=first_inits(1), state=state))
    assert [nvml.evaluate(file, "len(uuids())") for _ in range(2)] == [0, 1]
    assert state.read_text(encoding="ascii").split()[0] == "2"


def test_initialisations_at_once_are_each_counted(nvml: Probe) -> None:
    file = nvml.write(Scenario(gpus(1), no_gpus=first_inits(5)))
    processes = [nvml.start(file, "nvml.nvmlInit(); print(nvml.nvmlDeviceGetCount())") for _ in range(8)]
    counts = [process.communicate(timeout=30)[0].strip() for process in processes]
    assert sorted(counts) == ["0"] * 5 + ["1"] * 3


def test_an_initialisation_waits_for_another_to_be_counted(nvml: Probe) -> None:
    file = nvml.write(Scenario(gpus(1), no_gpus=first_inits(1)))
    with (nvml.folder / "scenario.state").open("w", encoding="ascii") as state:
        fcntl.flock(state, fcntl.LOCK_EX)
        process = nvml.start(file, "nvml.nvmlInit(); print(nvml.nvmlDeviceGetCount())")
        assert is_running_after(process, 1)
        state.write("1 0\n")
    assert process.communicate(timeout=20)[0].strip() == "1"
