"""The stand-in for rocm-smi prints the JSON of three generations of the tool."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from .rocm_smi import LOW_POWER, AmdGpu, Generation, RocmSmi, install, no_driver, no_gpus
from .shell import Ending

pytestmark = pytest.mark.timeout(60)

ALL = ("--showuniqueid", "--showbus", "--showproductname", "--json")
# The higher address has the lower card number, as where drivers probe in their own order.
FAR = AmdGpu("0000:c3:00.0", card=1, unique_id=0x0BBADF36F2D35F9C, series='A "quoted" \\ name')
NEAR = AmdGpu("0000:03:00.0", card=2, kfd_node=4, kfd_gpu_id=777)


def call(folder: Path, tool: RocmSmi, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([install(folder, tool), *arguments], capture_output=True, timeout=20, check=False)


def ask(folder: Path, generation: Generation, *arguments: str) -> dict[str, dict[str, str]]:
    result = call(folder, RocmSmi((FAR, NEAR), generation), *arguments)
    assert (result.returncode, result.stderr) == (0, b"")
    answer: dict[str, dict[str, str]] = json.loads(result.stdout)
    return answer


def test_rocm_6_numbers_cards_in_pci_order_and_spells_card_series(tmp_path: Path) -> None:
    answer = ask(tmp_path, Generation.ROCM_6, *ALL)
    assert list(answer) == ["card0", "card1"]
    assert answer["card0"] == {
        "Unique ID": "N/A",
        "PCI Bus": "0000:03:00.0",
        "Card Series": "AMD Instinct MI210",
        "Card Model": "0x740f",
        "Card Vendor": "Advanced Micro Devices, Inc. [AMD/ATI]",
        "Card SKU": "D67301",
        "Subsystem ID": "0x0c34",
        "Device Rev": "0x02",
        "Node ID": "4",
        "GUID": "777",
        "GFX Version": "gfx90a",
    }
    assert answer["card1"]["PCI Bus"] == "0000:C3:00.0"
    assert answer["card1"]["Card Series"] == 'A "quoted" \\ name'


def test_later_generations_drop_the_leading_zeros_of_a_unique_id(tmp_path: Path) -> None:
    assert ask(tmp_path, Generation.ROCM_6, *ALL)["card1"]["Unique ID"] == "0xbbadf36f2d35f9c"


def test_rocm_5_spells_card_series_in_lower_case(tmp_path: Path) -> None:
    answer = ask(tmp_path, Generation.ROCM_5, *ALL)
    assert list(answer) == ["card0", "card1"]
    assert list(answer["card0"]) == [
        *("Unique ID", "PCI Bus", "Card series", "Card model", "Card vendor", "Card SKU"),
    ]


def test_rocm_3_uses_drm_numbers_sysfs_spellings_and_leaves_out_missing_ids(tmp_path: Path) -> None:
    answer = ask(tmp_path, Generation.ROCM_3, *ALL)
    assert list(answer) == ["card1", "card2"]
    assert answer["card1"]["Unique ID"] == "0bbadf36f2d35f9c"
    assert answer["card1"]["PCI Bus"] == "0000:c3:00.0"
    assert list(answer["card2"]) == ["PCI Bus", "Card series", "Card vendor", "Card SKU"]


def test_only_what_is_asked_for_is_shown(tmp_path: Path) -> None:
    assert ask(tmp_path, Generation.ROCM_6, "--json", "--showbus") == {
        "card0": {"PCI Bus": "0000:03:00.0"},
        "card1": {"PCI Bus": "0000:C3:00.0"},
    }


def test_a_card_without_anything_to_show_is_left_out(tmp_path: Path) -> None:
    assert list(ask(tmp_path, Generation.ROCM_3, "--json", "--showuniqueid")) == ["card1"]


def test_an_unknown_option_is_refused(tmp_path: Path) -> None:
    result = call(tmp_path, RocmSmi((NEAR,)), "--json", "--showmood")
    assert (result.returncode, result.stdout) == (2, b"")
    assert b"unrecognized arguments: --showmood" in result.stderr


def test_warnings_may_stand_before_the_json_or_on_standard_error(tmp_path: Path) -> None:
    result = call(tmp_path, RocmSmi((NEAR,), warning=LOW_POWER, stderr=b"WARNING: other\n"), *ALL)
    assert result.stdout.startswith(LOW_POWER)
    assert list(json.loads(result.stdout.splitlines()[-1])) == ["card0"]
    assert result.stderr == b"WARNING: other\n"


@pytest.mark.parametrize("message", [b"not JSON\n", b'{"card0": {', b"\x00\xff{}", b"[]", b"Traceback ...\n"])
def test_anything_may_stand_in_place_of_the_json(tmp_path: Path, message: bytes) -> None:
    result = call(tmp_path, RocmSmi((NEAR,), message=message, exit_code=1), *ALL)
    assert (result.returncode, result.stdout) == (1, message)


@pytest.mark.parametrize("tool", [no_driver(), no_gpus(), RocmSmi()])
def test_without_gpus_there_is_no_json_and_yet_no_failure(tmp_path: Path, tool: RocmSmi) -> None:
    result = call(tmp_path, tool, *ALL)
    assert (result.returncode, result.stdout) == (0, b"")
    assert result.stderr


def test_a_hang_comes_after_the_answer(tmp_path: Path) -> None:
    tool = install(tmp_path, RocmSmi((NEAR,), ending=Ending.HANG))
    process = subprocess.Popen([tool, *ALL], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
    finally:
        process.kill()
        process.communicate()


def test_calls_are_logged(tmp_path: Path) -> None:
    log = tmp_path / "log"
    call(tmp_path, RocmSmi((NEAR,), log=log), *ALL)
    assert log.read_text(encoding="utf-8") == " ".join(ALL) + "\n"
