"""The lab's GPUs, as the installed package and real bindings find them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

from tests.isolation.cards import Card, Instance
from tests.isolation.hierarchies import View
from tests.isolation.installation import CURRENT, SCRIPT
from tests.isolation.lab import Lab
from tests.standins.kfd import KfdCpu, KfdGpu

TWO_CARDS = (Card(0, drm=("card1", "renderD128")), Card(1, minor=3, drm=("card2", "renderD129")))
INVENTORY = ("/usr/bin/python3", "-IS", f"{CURRENT}/bin/flink-gpu-discovery", "inventory", "--json", "--backend")


def seen(text: str) -> list[str]:
    """Indexes, or what else the inventory calls them."""
    return [gpu["uuid"] for gpu in json.loads(text)["gpus"]]


def test_nvml_shows_the_cards_that_its_caller_may_open(lab: Lab) -> None:
    lab.nvidia(*TWO_CARDS)
    executor = lab.executor()
    assert seen(executor.call(*INVENTORY, "nvml").out) == [card.uuid for card in TWO_CARDS]
    if executor.cgroup is not None and executor.cgroup.v1 is not None:
        executor.cgroup.limit_v1("c 195:0 rwm")
        assert seen(executor.call(*INVENTORY, "nvml").out) == [TWO_CARDS[1].uuid]
    else:
        lab.path("/dev/nvidia0").chmod(0o600)
        assert seen(executor.call(SCRIPT, *INVENTORY[3:], "nvml").out) == [TWO_CARDS[1].uuid]


def test_nvml_shows_mig_instances_with_their_capabilities(lab: Lab) -> None:
    split = Card(1, instances=(Instance("MIG-a", 1), Instance("MIG-b", 2, 1)))
    lab.nvidia(Card(0), split)
    executor = lab.executor()
    assert seen(executor.call(*INVENTORY, "nvml").out) == [Card(0).uuid, "MIG-a", "MIG-b"]
    access = lab.path("/proc/driver/nvidia/capabilities/gpu1/mig/gi2/ci1/access").read_text(encoding="ascii")
    assert access == "DeviceFileMinor: 158\nDeviceFileMode: 292\nDeviceFileModify: 1\n"
    assert split.capability_nodes(split.instances[1])[1] == "/dev/nvidia-caps/nvidia-cap158"
    assert executor.try_open("/dev/nvidia-caps/nvidia-cap158", os.O_RDONLY) == "ENXIO"
    assert executor.try_open("/dev/nvidia-caps/nvidia-cap1", os.O_RDONLY) == "ENXIO"


def test_sysfs_shows_amd_gpus(lab: Lab) -> None:
    lab.amd(KfdCpu(), KfdGpu("0000:c1:00.0", 128, 1, unique_id=7), KfdGpu("0000:c2:00.0", 129, 2, unique_id=8))
    executor = lab.executor()
    told = json.loads(executor.call(*INVENTORY, "amd-sysfs").out)["gpus"]
    assert [gpu["pci_address"] for gpu in told] == ["0000:c1:00.0", "0000:c2:00.0"]
    for node in ("/dev/kfd", "/dev/dri/renderD128", "/dev/dri/card2"):
        assert executor.try_open(node) == "ENXIO"


def test_two_labs_do_not_see_each_other(view: View, new_lab: Callable[..., Lab]) -> None:
    one, two = new_lab(view), new_lab(view)
    one.nvidia(*TWO_CARDS)
    two.nvidia(Card(5))
    one.settings("[flink-gpu-discovery]\n")
    assert not two.path("/etc/flink-gpu-discovery.conf").exists()
    assert seen(one.executor().call(SCRIPT, *INVENTORY[3:], "nvml").out) == [card.uuid for card in TWO_CARDS]
    executor = two.executor()
    assert seen(executor.call(SCRIPT, *INVENTORY[3:], "nvml").out) == [Card(5).uuid]
    assert executor.try_open("/dev/nvidia0") == "ENOENT"
    assert not one.pids() & two.pids()
