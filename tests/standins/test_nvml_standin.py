"""The stand-in shows the real pynvml the devices that the scenario describes, and no others."""

from __future__ import annotations

from pathlib import Path

import pytest

from .nvml.probe import Probe
from .nvml.scenario import Gpu, MigInstance, Scenario, gpus

pytestmark = pytest.mark.timeout(60)

A = "GPU-aaaaaaaa-0000-4000-8000-000000000000"
B = "GPU-bbbbbbbb-0000-4000-8000-000000000000"
C = "GPU-cccccccc-0000-4000-8000-000000000000"
MIG_1 = "MIG-11111111-0000-4000-8000-000000000000"
MIG_2 = "MIG-22222222-0000-4000-8000-000000000000"

# A file that refuses to be opened for reading whoever asks, root included.
FORBIDDEN = "/proc/sys/vm/compact_memory"


def reading(nvml: Probe, call: str, gpu: Gpu) -> object:
    return nvml.ask(Scenario((gpu,)), f"attempt(nvml.{call}, gpu(0))")


def test_gpus_are_listed_in_the_order_of_the_file(nvml: Probe) -> None:
    assert nvml.ask(Scenario((Gpu(B), Gpu(A))), "uuids()") == [B, A]


def test_a_host_without_gpus_counts_none(nvml: Probe) -> None:
    assert nvml.ask(Scenario(), "nvml.nvmlDeviceGetCount()") == 0


def test_an_index_beyond_the_last_gpu_is_an_invalid_argument(nvml: Probe) -> None:
    answer = nvml.ask(Scenario((Gpu(A),)), "attempt(nvml.nvmlDeviceGetHandleByIndex, 1)")
    assert answer == "NVMLError_InvalidArgument"


def test_versions_are_those_of_the_file(nvml: Probe) -> None:
    asked = "[nvml.nvmlSystemGetDriverVersion(), nvml.nvmlSystemGetNVMLVersion(),"
    asked += " nvml.nvmlSystemGetCudaDriverVersion(), nvml.nvmlSystemGetCudaDriverVersion_v2()]"
    scenario = Scenario(driver="470.1", nvml="11.470.1", cuda=11040)
    assert nvml.ask(scenario, asked) == ["470.1", "11.470.1", 11040, 11040]


@pytest.mark.parametrize("minor", [0, 7, 255])
def test_the_minor_number_is_free_of_the_index(nvml: Probe, minor: int) -> None:
    assert reading(nvml, "nvmlDeviceGetMinorNumber", Gpu(A, minor=minor)) == minor


def test_a_minor_number_may_be_unsupported(nvml: Probe) -> None:
    answer = reading(nvml, "nvmlDeviceGetMinorNumber", Gpu(A, minor="unsupported"))
    assert answer == "NVMLError_NotSupported"


def test_names_keep_their_spaces(nvml: Probe) -> None:
    assert reading(nvml, "nvmlDeviceGetName", Gpu(A, name="NVIDIA A100 SXM4  40GB")) == "NVIDIA A100 SXM4  40GB"


def test_a_device_tells_its_index(nvml: Probe) -> None:
    asked = "[nvml.nvmlDeviceGetIndex(gpu(i)) for i in (0, 1)]"
    assert nvml.ask(Scenario((Gpu(B), Gpu(A))), asked) == [0, 1]


def test_the_pci_address_comes_in_both_of_nvmls_spellings(nvml: Probe) -> None:
    setup = ["pci = nvml.nvmlDeviceGetPciInfo(gpu(0))"]
    asked = "[pci.busId, pci.busIdLegacy, pci.domain, pci.bus, pci.device]"
    answer = nvml.ask(Scenario((Gpu(A, pci="000a:c1:1f.0"),)), asked, setup=setup)
    assert answer == ["0000000A:C1:1F.0", "000A:C1:1F.0", 10, 0xC1, 31]


def test_a_gpu_is_found_by_uuid_and_by_any_spelling_of_its_address(nvml: Probe) -> None:
    setup = [
        f"handles = [nvml.nvmlDeviceGetHandleByUUID({A!r})]",
        "handles += map(nvml.nvmlDeviceGetHandleByPciBusId, ['0000:c1:00.0', '00000000:C1:00.0'])",
    ]
    # Another domain, and another device on the bus, are other GPUs.
    others = (Gpu(B, pci="0001:c1:00.0"), Gpu(C, pci="0000:c1:01.0"))
    scenario = Scenario((*others, Gpu(A, pci="0000:c1:00.0")))
    assert nvml.ask(scenario, "[nvml.nvmlDeviceGetUUID(h) for h in handles]", setup=setup) == [A, A, A]


@pytest.mark.parametrize(
    "lookup", [f"nvmlDeviceGetHandleByUUID, {B!r}", "nvmlDeviceGetHandleByPciBusId, '0000:01:00.0'"]
)
def test_an_unknown_gpu_is_not_found(nvml: Probe, lookup: str) -> None:
    assert nvml.ask(Scenario((Gpu(A),)), f"attempt(nvml.{lookup})") == "NVMLError_NotFound"


def test_256_gpus_have_distinct_addresses_in_ascending_order(nvml: Probe) -> None:
    asked = "[nvml.nvmlDeviceGetPciInfo(gpu(i)).busId for i in range(nvml.nvmlDeviceGetCount())]"
    addresses = nvml.ask(Scenario(gpus(256)), asked)
    assert isinstance(addresses, list)
    assert addresses == sorted(set(addresses))
    assert len(addresses) == 256


def test_calls_outside_a_session_are_uninitialised(nvml: Probe) -> None:
    setup = ["handle = gpu(0)", "nvml.nvmlShutdown()"]
    answer = nvml.ask(Scenario((Gpu(A),)), "attempt(nvml.nvmlDeviceGetUUID, handle)", setup=setup)
    assert answer == "NVMLError_Uninitialized"


def test_sessions_nest(nvml: Probe) -> None:
    setup = ["nvml.nvmlInit()", "nvml.nvmlShutdown()", "count = attempt(nvml.nvmlDeviceGetCount)"]
    asked = "[count, attempt(nvml.nvmlShutdown), attempt(nvml.nvmlShutdown)]"
    assert nvml.ask(Scenario(gpus(3)), asked, setup=setup) == [3, None, "NVMLError_Uninitialized"]


def test_a_new_session_reads_the_file_anew_and_refuses_old_handles(nvml: Probe, tmp_path: Path) -> None:
    later = nvml.write(Scenario((Gpu(B),))).rename(tmp_path / "later")
    setup = ["handle = gpu(0)", "import os", f"os.environ['STANDIN_NVML_SCENARIO'] = {str(later)!r}"]
    setup += ["nvml.nvmlShutdown()", "nvml.nvmlInit()"]
    answer = nvml.ask(Scenario((Gpu(A),)), "[uuids(), attempt(nvml.nvmlDeviceGetUUID, handle)]", setup=setup)
    assert answer == [[B], "NVMLError_InvalidArgument"]


def test_unknown_return_codes_get_words_from_the_library(nvml: Probe) -> None:
    assert nvml.ask(Scenario(), "nvml.nvmlErrorString(15)") == "GPU is lost"


# --- MIG


def test_a_gpu_without_mig_says_so(nvml: Probe) -> None:
    asked = "[attempt(nvml.nvmlDeviceGetMigMode, gpu(0)), nvml.nvmlDeviceGetMaxMigDeviceCount(gpu(0))]"
    assert nvml.ask(Scenario((Gpu(A),)), asked) == ["NVMLError_NotSupported", 0]


@pytest.mark.parametrize(
    ("mode", "pending", "expected"), [(True, None, [1, 1]), (False, None, [0, 0]), (False, True, [0, 1])]
)
def test_mig_mode_has_a_present_and_a_pending_value(
    nvml: Probe, mode: bool, pending: bool | None, expected: list[int]
) -> None:
    gpu = Gpu(A, mig_mode=mode, mig_mode_pending=pending)
    assert reading(nvml, "nvmlDeviceGetMigMode", gpu) == expected


def test_instances_are_found_by_slot_and_slots_may_be_empty(nvml: Probe) -> None:
    asked = "[attempt(slot, i) for i in range(nvml.nvmlDeviceGetMaxMigDeviceCount(gpu(0)) + 1)]"
    setup = [
        "def slot(i):",
        "    instance = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), i)",
        "    return nvml.nvmlDeviceGetUUID(instance)",
    ]
    gpu = Gpu(A, mig_slots=3, instances=(MigInstance(MIG_1, 1), MigInstance(MIG_2, 2, slot=2)))
    answer = nvml.ask(Scenario((gpu,)), asked, setup=setup)
    assert answer == [MIG_1, "NVMLError_NotFound", MIG_2, "NVMLError_InvalidArgument"]


def test_an_instance_tells_its_ids_and_its_gpu(nvml: Probe) -> None:
    setup = ["mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(1), 0)"]
    setup += ["parent = nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(mig)"]
    asked = "[nvml.nvmlDeviceGetGpuInstanceId(mig), nvml.nvmlDeviceGetComputeInstanceId(mig),"
    asked += " nvml.nvmlDeviceIsMigDeviceHandle(mig).value, nvml.nvmlDeviceIsMigDeviceHandle(parent).value,"
    asked += " nvml.nvmlDeviceGetUUID(parent), nvml.nvmlDeviceGetIndex(mig), nvml.nvmlDeviceGetName(mig)]"
    gpu = Gpu(A, name="A100", instances=(MigInstance(MIG_1, 9, 3),))
    answer = nvml.ask(Scenario((Gpu(B), gpu)), asked, setup=setup)
    assert answer == [9, 3, 1, 0, A, 0, "A100 MIG 1g"]


def test_an_instance_is_found_by_uuid(nvml: Probe) -> None:
    asked = f"nvml.nvmlDeviceGetGpuInstanceId(nvml.nvmlDeviceGetHandleByUUID({MIG_1!r}))"
    assert nvml.ask(Scenario((Gpu(A, instances=(MigInstance(MIG_1, 5),)),)), asked) == 5


def test_what_only_a_gpu_has_is_unsupported_on_an_instance(nvml: Probe) -> None:
    setup = ["mig = nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), 0)"]
    asked = "[attempt(c, mig) for c in (nvml.nvmlDeviceGetMinorNumber, nvml.nvmlDeviceGetPciInfo)]"
    answer = nvml.ask(Scenario((Gpu(A, instances=(MigInstance(MIG_1, 1),)),)), asked, setup=setup)
    assert answer == ["NVMLError_NotSupported"] * 2


def test_what_only_an_instance_has_is_an_invalid_argument_on_a_gpu(nvml: Probe) -> None:
    assert reading(nvml, "nvmlDeviceGetGpuInstanceId", Gpu(A)) == "NVMLError_InvalidArgument"


# --- Nodes


def test_nodes_are_left_alone_unless_asked_for(nvml: Probe) -> None:
    assert nvml.ask(Scenario((Gpu(A, nodes=(FORBIDDEN,)), Gpu(B))), "uuids()") == [A, B]


def test_a_gpu_whose_node_may_not_be_opened_is_left_out_and_the_rest_move_up(nvml: Probe) -> None:
    gpus_ = (Gpu(A, nodes=("/dev/null", FORBIDDEN)), Gpu(B, nodes=("/dev/null",)))
    asked = f"[uuids(), nvml.nvmlDeviceGetIndex(gpu(0)), attempt(nvml.nvmlDeviceGetHandleByUUID, {A!r})]"
    assert nvml.ask(Scenario(gpus_, open_nodes="hide"), asked) == [[B], 0, "NVMLError_NotFound"]


def test_a_missing_node_is_no_lack_of_permission(nvml: Probe) -> None:
    scenario = Scenario((Gpu(A, nodes=("/dev/there-is-no-such-node",)),), open_nodes="hide")
    assert nvml.ask(scenario, "uuids()") == [A]


def test_a_gpu_without_permission_may_still_be_counted(nvml: Probe) -> None:
    scenario = Scenario((Gpu(A, nodes=(FORBIDDEN,)), Gpu(B)), open_nodes="no-permission")
    asked = "[nvml.nvmlDeviceGetCount(), attempt(gpu, 0), nvml.nvmlDeviceGetUUID(gpu(1))]"
    assert nvml.ask(scenario, asked) == [2, "NVMLError_NoPermission", B]


def test_an_instance_without_permission_is_refused_and_its_gpu_is_not(nvml: Probe) -> None:
    gpu = Gpu(A, instances=(MigInstance(MIG_1, 1, nodes=(FORBIDDEN,)), MigInstance(MIG_2, 2)))
    asked = "[attempt(uuid_in, slot) for slot in (0, 1)]"
    setup = [
        "def uuid_in(slot):",
        "    return nvml.nvmlDeviceGetUUID(nvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu(0), slot))",
    ]
    answer = nvml.ask(Scenario((gpu,), open_nodes="hide"), asked, setup=setup)
    assert answer == ["NVMLError_NoPermission", MIG_2]
