"""The stand-in for nvidia-smi prints what the real one prints, and ends in every way it can end."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .nvidia_smi import (
    ERROR_LINE,
    GARBAGE,
    LOST_GPU,
    NvidiaSmi,
    SmiGpu,
    SmiInstance,
    install,
    no_devices,
    no_driver,
    version_mismatch,
)
from .shell import Ending

pytestmark = pytest.mark.timeout(60)

ONE = SmiGpu(0, "GPU-1", pci="00000000:41:00.0", mig_mode="Disabled")
TWO = SmiGpu(1, "GPU-2", pci="0000000A:C1:1F.0", name="It's a 100% \\ GPU", memory_mib=80, memory_used_mib=30)
PLAIN = "--format=csv,noheader"


def call(folder: Path, tool: NvidiaSmi, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([install(folder, tool), *arguments], capture_output=True, timeout=20, check=False)


def query(folder: Path, rows: tuple[SmiGpu | bytes, ...], fields: str, form: str = PLAIN) -> str:
    result = call(folder, NvidiaSmi(rows), f"--query-gpu={fields}", form)
    assert (result.returncode, result.stderr) == (0, b"")
    return result.stdout.decode("utf-8")


def test_a_query_answers_in_the_order_in_which_it_asks(tmp_path: Path) -> None:
    answer = query(tmp_path, (ONE, TWO), "index,uuid,pci.bus_id,name,mig.mode.current")
    assert answer.splitlines() == [
        "0, GPU-1, 00000000:41:00.0, NVIDIA A100-SXM4-40GB, Disabled",
        "1, GPU-2, 0000000A:C1:1F.0, It's a 100% \\ GPU, [N/A]",
    ]
    assert query(tmp_path, (ONE,), "uuid,index,uuid") == "GPU-1, 0, GPU-1\n"


def test_upstream_flinks_query_is_answered(tmp_path: Path) -> None:
    assert query(tmp_path, (ONE, TWO), "index") == "0\n1\n"


def test_fields_have_their_aliases_and_may_be_spaced(tmp_path: Path) -> None:
    assert query(tmp_path, (ONE,), "gpu_uuid, gpu_bus_id , gpu_name") == query(tmp_path, (ONE,), "uuid,pci.bus_id,name")


def test_the_parts_of_an_address_are_hexadecimal(tmp_path: Path) -> None:
    assert query(tmp_path, (TWO,), "pci.domain,pci.bus,pci.device") == "0x000A, 0xC1, 0x1F\n"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("--format=csv", "index, memory.total [MiB]\n1, 80 MiB\n"),
        ("--format=csv,noheader", "1, 80 MiB\n"),
        ("--format=csv,noheader,nounits", "1, 80\n"),
        ("--format=noheader,nounits,csv", "1, 80\n"),
    ],
)
def test_header_and_units_may_be_left_out(tmp_path: Path, form: str, expected: str) -> None:
    assert query(tmp_path, (TWO,), "index,memory.total", form) == expected


def test_any_field_may_be_answered_otherwise(tmp_path: Path) -> None:
    odd = SmiGpu(0, "GPU-1", fields={"uuid": "[Unknown Error]", "memory.total": "[N/A]"})
    assert query(tmp_path, (odd,), "uuid,memory.total") == "[Unknown Error], [N/A]\n"


def test_a_field_that_the_stand_in_lacks_cannot_be_set() -> None:
    with pytest.raises(ValueError, match="knows no field mood"):
        SmiGpu(0, "GPU-1", fields={"mood": "good"}).answers()


def test_an_unknown_field_is_refused_as_the_real_tool_does(tmp_path: Path) -> None:
    result = call(tmp_path, NvidiaSmi((ONE,)), "--query-gpu=index,mood", PLAIN)
    assert (result.returncode, result.stdout) == (2, b'Field "mood" is not a valid field to query.\n\n')


@pytest.mark.parametrize("arguments", [["--mood"], ["--query-gpu=index"], ["--query-gpu=index", "--format=xml"]])
def test_other_calls_are_refused(tmp_path: Path, arguments: list[str]) -> None:
    assert call(tmp_path, NvidiaSmi((ONE,)), *arguments).returncode == 2


def test_the_list_shows_mig_instances_which_a_query_does_not(tmp_path: Path) -> None:
    gpu = SmiGpu(0, "GPU-1", name="A100", instances=(SmiInstance("MIG-1"), SmiInstance("MIG-2", "3g.20gb")))
    assert call(tmp_path, NvidiaSmi((gpu,)), "-L").stdout.decode("utf-8").splitlines() == [
        "GPU 0: A100 (UUID: GPU-1)",
        "  MIG 1g.5gb      Device  0: (UUID: MIG-1)",
        "  MIG 3g.20gb     Device  1: (UUID: MIG-2)",
    ]
    assert query(tmp_path, (gpu,), "uuid") == "GPU-1\n"


def test_hostile_lines_come_out_byte_for_byte_among_good_ones(tmp_path: Path) -> None:
    everything = bytes(range(256))
    rows = (ONE, LOST_GPU, ERROR_LINE, GARBAGE, everything, b"\n", TWO)
    result = call(tmp_path, NvidiaSmi(rows), "--query-gpu=index", PLAIN)
    assert result.stdout == b"".join([b"0\n", LOST_GPU, ERROR_LINE, GARBAGE, everything, b"\n", b"1\n"])


def test_good_lines_may_be_followed_by_failure(tmp_path: Path) -> None:
    tool = NvidiaSmi((ONE, LOST_GPU), exit_code=15, stderr=b"100% \\ bad\n")
    result = call(tmp_path, tool, "--query-gpu=index", PLAIN)
    assert (result.returncode, result.stdout, result.stderr) == (15, b"0\n" + LOST_GPU, b"100% \\ bad\n")


@pytest.mark.parametrize(
    ("tool", "exit_code", "line"),
    [
        (version_mismatch(), 18, b"Failed to initialize NVML: Driver/library version mismatch\n"),
        (version_mismatch(), 18, b"NVML library version: 550.54\n"),
        (no_driver(), 9, b"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."),
        (no_devices(), 6, b"No devices were found\n"),
    ],
)
@pytest.mark.parametrize("arguments", [[], ["-L"], ["--query-gpu=index", PLAIN]])
def test_failures_come_whatever_is_asked(
    tmp_path: Path, tool: NvidiaSmi, exit_code: int, line: bytes, arguments: list[str]
) -> None:
    result = call(tmp_path, tool, *arguments)
    assert result.returncode == exit_code
    assert line in result.stdout


def start(folder: Path, ending: Ending) -> subprocess.Popen[bytes]:
    tool = install(folder, NvidiaSmi((ONE,), ending=ending, flood=b"ERR!"))
    # A session of its own, so that what is left of it can be ended as a whole.
    return subprocess.Popen(
        [tool, "--query-gpu=index", PLAIN], stdout=subprocess.PIPE, start_new_session=True, bufsize=0
    )


def end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def ended_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def read_some(process: subprocess.Popen[bytes], size: int) -> bytes:
    assert process.stdout is not None
    return process.stdout.read(size)


def test_a_hang_after_good_lines_ends_with_sigterm(tmp_path: Path) -> None:
    process = start(tmp_path, Ending.HANG)
    try:
        assert read_some(process, 2) == b"0\n"
        assert not ended_within(process, 0.3)
        process.terminate()
        assert ended_within(process, 5)
    finally:
        end(process)


def test_a_stubborn_hang_ignores_sigterm(tmp_path: Path) -> None:
    process = start(tmp_path, Ending.HANG_IGNORING_SIGTERM)
    try:
        assert read_some(process, 2) == b"0\n"
        for _ in range(3):
            process.terminate()
        assert not ended_within(process, 0.3)
        process.kill()
        assert ended_within(process, 5)
    finally:
        end(process)


def test_a_grandchild_holds_the_pipe_open_after_the_tool_has_ended(tmp_path: Path) -> None:
    process = start(tmp_path, Ending.HANG_HOLDING_PIPE)
    try:
        assert ended_within(process, 5)
        assert process.returncode == 0
        assert read_some(process, 2) == b"0\n"
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        time.sleep(0.2)
        # None is "nothing yet", where the end of the output would be b"".
        assert process.stdout.read(1) is None
    finally:
        end(process)


def test_a_flood_does_not_end(tmp_path: Path) -> None:
    process = start(tmp_path, Ending.FLOOD)
    try:
        size = 0
        while size < 10_000_000:
            chunk = read_some(process, 1 << 20)
            assert chunk
            size += len(chunk)
        assert not ended_within(process, 0.1)
    finally:
        end(process)


def test_calls_are_logged_with_their_arguments(tmp_path: Path) -> None:
    log = tmp_path / "a log"
    tool = NvidiaSmi((ONE,), log=log)
    call(tmp_path, tool, "-L")
    call(tmp_path, tool, "--query-gpu=index", PLAIN)
    assert log.read_text(encoding="utf-8") == f"-L\n--query-gpu=index {PLAIN}\n"


def test_an_answer_may_be_slow(tmp_path: Path) -> None:
    begin = time.monotonic()
    assert call(tmp_path, NvidiaSmi((ONE,), delay_seconds=0.4), "-L").stdout.startswith(b"GPU 0")
    assert time.monotonic() - begin >= 0.4


def test_256_gpus_are_answered_without_starting_another_program(tmp_path: Path) -> None:
    rows = tuple(SmiGpu(index, f"GPU-{index}") for index in range(256))
    tool = install(tmp_path, NvidiaSmi(rows))
    arguments = ["--query-gpu=index,uuid,pci.bus_id,name,mig.mode.current", PLAIN]
    # Without PATH the shell finds nothing but what is built into it.
    result = subprocess.run([tool, *arguments], capture_output=True, env={}, timeout=20, check=True)
    assert result.stdout.count(b"\n") == 256
    assert result.stderr == b""
