"""The nvidia-smi backend against a stand-in that fails as the real tool does."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from flink_gpu_discovery.gpus import nvidia_smi
from tests.standins import nvidia_smi as standin
from tests.standins.nvidia_smi import NvidiaSmi, SmiGpu
from tests.standins.shell import Ending
from tests.support.script import PATH, Result, run

UUID = "GPU-0000000{}-0000-4000-8000-000000000000"
GPUS = tuple([SmiGpu(index, UUID.format(index), f"00000000:{index + 1:02X}:00.0") for index in range(4)])
Ask = Callable[..., Result]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run the command on a host whose nvidia-smi behaves as described."""

    def call(tool: NvidiaSmi, *words: str, backend: str = "nvidia-smi") -> Result:
        standin.install(tmp_path / "bin", tool)
        return run(*words, "--backend", backend, env={"PATH": f"{tmp_path / 'bin'}:{PATH}"})

    return call


def test_gpus_are_handed_out_by_index(ask: Ask) -> None:
    assert ask(NvidiaSmi(GPUS), "2").out == "0,1\n"
    assert ask(NvidiaSmi(tuple(reversed(GPUS))), "2").out == "0,1\n"
    assert ask(NvidiaSmi(GPUS), "5").code == 69


def test_auto_falls_back_to_it(ask: Ask) -> None:
    assert ask(NvidiaSmi(GPUS), "2", backend="auto").out == "0,1\n"


def test_what_is_known_of_each_gpu(ask: Ask) -> None:
    table = ask(NvidiaSmi(GPUS[:1]), "inventory").out
    for part in (UUID.format(0), "0000:01:00.0", "NVIDIA A100-SXM4-40GB"):
        assert part in table


HOSTILE: dict[str, SmiGpu | bytes] = {
    "lost": standin.LOST_GPU,
    "error": standin.ERROR_LINE,
    "garbage": standin.GARBAGE,
    "blank": b"\n  \n",
    "not available": SmiGpu(1, "[N/A]"),
    "index": SmiGpu(1, UUID.format(1), fields={"index": "ERR!"}),
    "bus": SmiGpu(1, UUID.format(1), fields={"pci.bus_id": "[Unknown Error]"}),
    "mig": SmiGpu(1, UUID.format(1), mig_mode="[Unknown Error]"),
    "name": SmiGpu(1, UUID.format(1), name="ERR!"),
    "long": b"1, GPU-" + b"a" * 5000 + b", 00000000:02:00.0, [N/A], x\n",
    "dashes": b"1, GPU---------, 00000000:02:00.0, [N/A], x\n",
    "underscores": b"1, " + UUID.format(1).encode() + b", 0_0:0_2:0_0.0, [N/A], x\n",
    "negative": b"-1, " + UUID.format(1).encode() + b", 00000000:02:00.0, [N/A], x\n",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("exit_code", [0, 14])
def test_hostile_lines_among_good_ones_hide_nothing(ask: Ask, kind: str, exit_code: int) -> None:
    result = ask(NvidiaSmi((GPUS[0], HOSTILE[kind], *GPUS[2:]), exit_code=exit_code), "3")
    assert (result.code, result.out) == (0, "0,2,3\n")
    assert result.err == "" if kind == "blank" else "left out" in result.err
    assert len(result.err) < 4096


def test_an_index_listed_twice_is_trusted_on_neither_line(ask: Ask) -> None:
    result = ask(NvidiaSmi((GPUS[0], GPUS[1], dataclasses.replace(GPUS[2], index=1), GPUS[3])), "2")
    assert (result.code, result.out) == (0, "0,3\n")
    assert "lists an index or UUID twice" in result.err


def test_a_gpu_split_by_mig_is_left_out_with_the_mend(ask: Ask) -> None:
    result = ask(NvidiaSmi((dataclasses.replace(GPUS[0], mig_mode="Enabled"), *GPUS[1:])), "2")
    assert (result.code, result.out) == (0, "1,2\n")
    assert "MIG is on, and only the nvml backend lists its instances" in result.err


def test_a_tool_that_knows_no_mig_is_asked_without(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    script = folder / "nvidia-smi"
    script.write_text(
        "#!/bin/sh\n"
        'case $1 in *mig*) echo "Field \\"mig.mode.current\\" is not a valid field to query."; exit 2;; esac\n'
        f"echo '0, {UUID.format(0)}, 00000000:01:00.0, Tesla K80'\n"
    )
    script.chmod(0o755)
    result = run("1", "--backend", "nvidia-smi", env={"PATH": f"{folder}:{PATH}"})
    assert (result.code, result.out, result.err) == (0, "0\n", "")


@pytest.mark.parametrize(
    ("tool", "code", "message"),
    [
        (standin.version_mismatch(), 71, "reboot"),
        (standin.no_driver(), 71, "couldn't communicate"),
        (standin.no_devices(), 71, "status 6"),
        (NvidiaSmi(message=b"", exit_code=9), 71, "no message"),
        (NvidiaSmi(message=b""), 69, "0 seen"),
        (NvidiaSmi(GPUS, ending=Ending.FLOOD), 71, "more than 1 MiB"),
    ],
    ids=["mismatch", "no driver", "no devices", "silent failure", "nothing", "flood"],
)
def test_failures_are_named(ask: Ask, tool: NvidiaSmi, code: int, message: str) -> None:
    result = ask(tool, "1")
    assert (result.code, result.out) == (code, "")
    assert message in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("ending", [Ending.HANG, Ending.HANG_IGNORING_SIGTERM])
@pytest.mark.parametrize("backend", ["nvidia-smi", "auto"])
def test_a_hanging_tool_ends_before_the_deadline(ask: Ask, tmp_path: Path, ending: Ending, backend: str) -> None:
    start = time.monotonic()
    words = ("--deadline", "1.5", "--ledger", str(tmp_path / "ledger"))
    result = ask(NvidiaSmi(GPUS, ending=ending), "1", *words, backend=backend)
    assert (result.code, result.out) == (75, "")
    assert "nvidia-smi did not answer in time" in result.err
    assert time.monotonic() - start < 3
    assert not (tmp_path / "ledger").exists()


def test_a_tool_that_leaves_a_process_behind_is_not_waited_for(ask: Ask) -> None:
    start = time.monotonic()
    assert ask(NvidiaSmi(GPUS, ending=Ending.HANG_HOLDING_PIPE), "1").out == "0\n"
    assert time.monotonic() - start < 5


def test_it_is_found_without_a_path(tmp_path: Path) -> None:
    result = run("1", "--backend", "nvidia-smi", env={"PATH": str(tmp_path)})
    assert result.code == 71 or Path("/usr/bin/nvidia-smi").exists()
    assert "/usr/bin" in result.err or result.code == 0


@pytest.mark.parametrize("folder", ["", ".", "bin"])
def test_relative_folders_of_the_path_are_not_searched(ask: Ask, tmp_path: Path, folder: str) -> None:
    ask(NvidiaSmi(GPUS), "1")
    result = run("1", "--backend", "nvidia-smi", env={"PATH": folder}, cwd=tmp_path / "bin")
    assert result.code == 71 or Path("/usr/bin/nvidia-smi").exists()


def test_notes_are_few_however_many_lines_are_bad() -> None:
    gpus, notes = nvidia_smi.parse("ERR!\n" * 1000)
    assert gpus == ()
    assert len(notes) == 8
