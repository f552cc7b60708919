"""Which nodes an owner may open: pure decisions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.isolation.rules import DeviceNode, Survey, rules_for

NVIDIA, DRM, CAPS = 195, 226, 237
CONTROL = DeviceNode("/dev/nvidiactl", NVIDIA, 255)


def gpu(minor: int) -> DeviceNode:
    return DeviceNode(f"/dev/nvidia{minor}", NVIDIA, minor)


def card(minor: int) -> DeviceNode:
    return DeviceNode(f"/dev/dri/card{minor}", DRM, minor)


def cap(minor: int) -> DeviceNode:
    return DeviceNode(f"/dev/nvidia-caps/nvidia-cap{minor}", CAPS, minor)


def survey(of_gpu: Mapping[str, tuple[DeviceNode, ...]], *more: DeviceNode, closed: bool = True) -> Survey:
    existing = {node.number: node for nodes in of_gpu.values() for node in nodes}
    existing.update({node.number: node for node in more})
    classes = frozenset({number[0] for number in existing}) if closed else frozenset()
    return Survey(of_gpu=of_gpu, existing=tuple(existing.values()), shared=(CONTROL,), classes=classes)


FOUR = {"A": (gpu(0), card(1)), "B": (gpu(2),), "C": (gpu(7), card(4))}


def test_an_owner_may_open_its_nodes_and_the_shared_ones() -> None:
    rules = rules_for(survey(FOUR), ["A"])
    assert rules.allowed == ((NVIDIA, 0), (NVIDIA, 255), (DRM, 1))
    assert rules.denied == ((NVIDIA, 2), (NVIDIA, 7), (DRM, 4))


def test_without_a_gpu_every_gpu_is_denied_and_the_shared_nodes_stay_open() -> None:
    rules = rules_for(survey(FOUR), [])
    assert rules.allowed == ((NVIDIA, 255),)
    assert rules.denied == ((NVIDIA, 0), (NVIDIA, 2), (NVIDIA, 7), (DRM, 1), (DRM, 4))


def test_nodes_of_gpus_that_no_backend_lists_are_denied_too() -> None:
    assert (NVIDIA, 9) in rules_for(survey(FOUR, gpu(9)), ["A", "B", "C"]).denied


def test_a_gpu_that_has_vanished_allows_nothing() -> None:
    assert rules_for(survey(FOUR), ["Z"]).allowed == ((NVIDIA, 255),)


@pytest.mark.parametrize(
    ("number", "open_"),
    [((NVIDIA, 0), True), ((NVIDIA, 2), False), ((NVIDIA, 33), False), ((NVIDIA, 255), True), ((1, 3), True)],
)
def test_of_a_closed_class_what_is_unknown_is_denied(number: tuple[int, int], open_: bool) -> None:
    assert rules_for(survey(FOUR), ["A"]).allows(*number) is open_


def test_of_an_open_class_only_what_is_known_is_denied() -> None:
    rules = rules_for(survey(FOUR, closed=False), ["A"])
    assert rules.allows(NVIDIA, 33)
    assert not rules.allows(NVIDIA, 2)


def test_instances_of_one_gpu_share_its_node_and_not_each_others_capabilities() -> None:
    instances = {"MIG-a": (gpu(0), cap(21), cap(22)), "MIG-b": (gpu(0), cap(30), cap(31))}
    rules = rules_for(survey(instances, cap(1), cap(2)), ["MIG-a"])
    assert rules.allowed == ((NVIDIA, 0), (NVIDIA, 255), (CAPS, 21), (CAPS, 22))
    assert rules.denied == ((CAPS, 1), (CAPS, 2), (CAPS, 30), (CAPS, 31))


def test_compute_instances_share_their_gpu_instance() -> None:
    instances = {"MIG-a": (gpu(0), cap(21), cap(22)), "MIG-b": (gpu(0), cap(21), cap(23))}
    assert rules_for(survey(instances), ["MIG-a"]).denied == ((CAPS, 23),)


@pytest.mark.parametrize(
    "doubled",
    [
        {"A": (gpu(0),), "B": (gpu(0),)},
        {"A": (gpu(0), card(1)), "B": (gpu(1), card(1))},
        {"MIG-a": (gpu(0), cap(21), cap(22)), "MIG-b": (gpu(0), cap(21), cap(22))},
    ],
    ids=["one node", "one DRM node", "one capability"],
)
def test_gpus_that_cannot_be_told_apart_are_refused(doubled: dict[str, tuple[DeviceNode, ...]]) -> None:
    with pytest.raises(SystemRefusedError, match="belongs to several GPUs"):
        rules_for(survey(doubled), [next(iter(doubled))])


def test_gpus_that_cannot_be_told_apart_hinder_nobody_else() -> None:
    doubled = {"A": (gpu(0),), "B": (gpu(0),), "C": (gpu(5),)}
    assert rules_for(survey(doubled), ["C"]).denied == ((NVIDIA, 0),)


def test_the_order_in_which_nodes_were_found_does_not_matter() -> None:
    backwards = dict(reversed(FOUR.items()))
    one, other = rules_for(survey(FOUR), ["A", "C"]), rules_for(survey(backwards), ["C", "A"])
    assert (one.allowed, one.denied, one.classes) == (other.allowed, other.denied, other.classes)
