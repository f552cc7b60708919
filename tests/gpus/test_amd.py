"""The AMD backends: the kernel's KFD topology, and rocm-smi."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flink_gpu_discovery.errors import SystemRefusedError, TryAgainError
from flink_gpu_discovery.gpus import amd_sysfs, rocm_smi
from flink_gpu_discovery.host import Host
from flink_gpu_discovery.models import Inventory
from tests.standins import kfd
from tests.standins import rocm_smi as standin
from tests.standins.kfd import KfdCpu, KfdGpu
from tests.standins.rocm_smi import AmdGpu, Generation, RocmSmi
from tests.standins.shell import Ending
from tests.standins.sysfs import management_vga
from tests.support.script import PATH, Result, run

FIRST = KfdGpu("0000:c3:00.0", render_minor=129, card=2, unique_id=0x1234567890ABCDEF)
SECOND = KfdGpu("0000:03:00.0", render_minor=128, card=1, unique_id=0xFEDCBA0987654321)
Ask = Callable[..., Result]


def topology(folder: Path, *nodes: KfdCpu | KfdGpu) -> Inventory:
    root = kfd.install(folder, [KfdCpu(), KfdCpu(), *nodes], others=[management_vga("0000:02:00.0")])
    return amd_sysfs.query(Host(sys=str(root)), 10)


def facts(seen: Inventory) -> list[tuple[str, str, str, str]]:
    return [(gpu.index, gpu.uuid, gpu.pci_address, gpu.node) for gpu in seen.gpus]


def test_gpus_are_counted_in_the_topologys_order_and_mapped_by_it(tmp_path: Path) -> None:
    assert facts(topology(tmp_path, FIRST, SECOND)) == [
        ("0", "GPU-1234567890abcdef", "0000:c3:00.0", "/dev/dri/renderD129"),
        ("1", "GPU-fedcba0987654321", "0000:03:00.0", "/dev/dri/renderD128"),
    ]


def test_addresses_with_a_domain_a_device_and_a_function(tmp_path: Path) -> None:
    assert facts(topology(tmp_path, KfdGpu("0001:81:1f.5", render_minor=128, card=5)))[0][2] == "0001:81:1f.5"


def test_a_gpu_without_an_id_of_its_own_is_known_by_its_address(tmp_path: Path) -> None:
    assert facts(topology(tmp_path, KfdGpu("0000:03:00.0", render_minor=128, card=5)))[0][1] == "GPU-PCI-0000:03:00.0"


def test_a_gpu_that_is_denied_is_left_out_and_keeps_its_index(tmp_path: Path) -> None:
    denied = KfdGpu(FIRST.pci, render_minor=140, card=5, unique_id=5, denied=True)
    seen = topology(tmp_path, denied, SECOND)
    assert [gpu.index for gpu in seen.gpus] == ["1"]
    assert "KFD node 2 is left out" in seen.notes[0]


def test_properties_that_lack_the_address_leave_the_gpu_out(tmp_path: Path) -> None:
    broken = KfdGpu(FIRST.pci, render_minor=140, card=5, properties={"location_id": None})
    assert [gpu.index for gpu in topology(tmp_path, broken, SECOND).gpus] == ["1"]


def test_an_old_kernel_without_domain_and_unique_id_is_enough(tmp_path: Path) -> None:
    old = KfdGpu("0000:03:00.0", render_minor=128, card=5, properties={"domain": None, "unique_id": None})
    assert facts(topology(tmp_path, old)) == [("0", "GPU-PCI-0000:03:00.0", "0000:03:00.0", "/dev/dri/renderD128")]


def test_partitions_of_a_gpu_have_its_address(tmp_path: Path) -> None:
    parts = [
        KfdGpu(FIRST.pci, render_minor=128 + part, card=5 + part, unique_id=7 + part, partition=part)
        for part in range(3)
    ]
    assert {gpu.pci_address for gpu in topology(tmp_path, *parts).gpus} == {FIRST.pci}


def test_a_host_without_the_topology_says_so(tmp_path: Path) -> None:
    with pytest.raises(SystemRefusedError, match="does not exist; load the amdgpu kernel module"):
        amd_sysfs.query(Host(sys=str(tmp_path)), 10)


def test_a_topology_that_blocks_its_reader_is_not_waited_for(tmp_path: Path) -> None:
    root = kfd.install(tmp_path, [FIRST])
    gpu_id = root / "class/kfd/kfd/topology/nodes/0/gpu_id"
    gpu_id.unlink()
    os.mkfifo(gpu_id)
    start = time.monotonic()
    with pytest.raises(TryAgainError, match="the KFD topology did not answer"):
        amd_sysfs.query(Host(sys=str(root)), 0.5)
    assert time.monotonic() - start < 3


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    """Run the command on a host whose rocm-smi behaves as described."""

    def call(tool: RocmSmi, *words: str, backend: str = "rocm-smi", **env: str) -> Result:
        standin.install(tmp_path / "bin", tool)
        return run(*words, "--backend", backend, env={"PATH": f"{tmp_path / 'bin'}:{PATH}", **env})

    return call


CARDS = (AmdGpu(FIRST.pci, card=2, unique_id=FIRST.unique_id), AmdGpu(SECOND.pci, card=1, unique_id=SECOND.unique_id))


@pytest.mark.parametrize("generation", Generation)
def test_every_generation_of_rocm_smi_is_read(ask: Ask, generation: Generation) -> None:
    result = ask(RocmSmi(CARDS, generation=generation), "inventory", "--json")
    found: list[dict[str, Any]] = json.loads(result.out)["gpus"]
    assert {(gpu["uuid"], gpu["pci_address"], gpu["name"]) for gpu in found} == {
        ("GPU-1234567890abcdef", "0000:c3:00.0", "AMD Instinct MI210"),
        ("GPU-fedcba0987654321", "0000:03:00.0", "AMD Instinct MI210"),
    }


def test_both_backends_name_a_gpu_alike(ask: Ask, tmp_path: Path) -> None:
    tool = json.loads(ask(RocmSmi(CARDS), "inventory", "--json").out)["gpus"]
    assert {gpu["uuid"] for gpu in tool} == {gpu.uuid for gpu in topology(tmp_path / "sys", FIRST, SECOND).gpus}


def test_gpus_are_handed_out_and_narrowed(ask: Ask) -> None:
    assert ask(RocmSmi(CARDS), "2").out == "0,1\n"
    assert ask(RocmSmi(CARDS), "1", ROCR_VISIBLE_DEVICES="GPU-1234567890abcdef").out == "1\n"
    assert ask(RocmSmi(CARDS), "3").code == 69


def test_auto_comes_to_it_last(ask: Ask) -> None:
    assert ask(RocmSmi(CARDS), "1", backend="auto").out == "0\n"


def test_warnings_before_the_json_are_skipped(ask: Ask) -> None:
    assert ask(RocmSmi(CARDS, warning=standin.LOW_POWER), "2").out == "0,1\n"


def test_a_card_without_a_unique_id_is_known_by_its_address(ask: Ask) -> None:
    assert "GPU-PCI-0000:03:00.0" in ask(RocmSmi((AmdGpu("0000:03:00.0"),)), "inventory").out


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (standin.no_driver(), "Driver not initialized"),
        (standin.no_gpus(), "No AMD GPUs"),
        (RocmSmi(message=b"{broken"), "no JSON"),
        (RocmSmi(message=b"nonsense"), "no JSON"),
        (RocmSmi(message=b'{"card0":' + b"[" * 100_000), "no JSON"),
        (RocmSmi(message=b'{"card0": {"PCI Bus": "0000:03:00.0", "Unique ID": "-5"}}'), "card0 is left out"),
        (RocmSmi(message=b'{"card0": {"PCI Bus": "0_0:03:00.0"}}'), "card0 is left out"),
        (RocmSmi(message=b'{"card0": {"PCI Bus": "nowhere"}}'), "card0 is left out"),
        (RocmSmi(message=b'{"card0": {}}'), "card0 is left out"),
        (RocmSmi(message=b"", exit_code=1), "status 1"),
        (RocmSmi(CARDS, ending=Ending.FLOOD), "more than 1 MiB"),
    ],
    ids=[
        "no driver",
        "no gpus",
        "broken",
        "nonsense",
        "deep",
        "negative",
        "underscore",
        "bad address",
        "no address",
        "fails",
        "flood",
    ],
)
def test_failures_are_named(ask: Ask, tool: RocmSmi, message: str) -> None:
    result = ask(tool, "1")
    assert (result.code, result.out) == (71, "")
    assert message in result.err


@pytest.mark.parametrize("ending", [Ending.HANG, Ending.HANG_IGNORING_SIGTERM])
def test_a_hanging_tool_ends_before_the_deadline(ask: Ask, ending: Ending) -> None:
    start = time.monotonic()
    result = ask(RocmSmi(CARDS, ending=ending), "1", "--deadline", "1.5")
    assert (result.code, result.out) == (75, "")
    assert time.monotonic() - start < 3


@pytest.mark.parametrize(
    "text", ["[]", "null", "{}", '{"system": {}}', '{"card": {}}', '{"cardx": {}}', '{"card0": 1}']
)
def test_json_without_cards_lists_none(text: str) -> None:
    assert rocm_smi.parse(text)[0] == ()
