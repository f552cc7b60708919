"""What belongs to a GPU differs: MIG instances, AMD's DRM nodes, GPUs that are simulated or that no driver tells of."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.isolation.cards import DRM_MAJOR, Card, Instance
from tests.isolation.confining import (
    CARDS,
    DENIED,
    OPEN,
    allocate,
    answers,
    any_view,
    call,
    confined,
    confinements,
    held,
    opens,
    states,
)
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.lab import Lab
from tests.standins.kfd import KfdCpu, KfdGpu
from tests.standins.nvml.faults import fail

SPLIT = Card(0, minor=2, instances=(Instance("MIG-a", 1), Instance("MIG-b", 2, 1)))
WHOLE = Card(1, minor=0)
CONFIG, MONITOR = "/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"
AMD = (
    KfdCpu(),
    KfdGpu("0000:c1:00.0", 130, 1, unique_id=7),
    KfdGpu("0000:c2:00.0", 128, 4, unique_id=8),
    KfdGpu("0000:c3:00.0", 129, 2, unique_id=9),
)
PARTITIONS = (
    KfdGpu("0000:c1:00.0", 128, 1, unique_id=7),
    KfdGpu("0000:c1:00.0", 129, 2, unique_id=8, partition=1),
)


def amd_nodes(gpu: KfdCpu | KfdGpu) -> tuple[str, str]:
    assert isinstance(gpu, KfdGpu)
    return f"/dev/dri/card{gpu.card}", f"/dev/dri/renderD{gpu.render_minor}"


def test_the_owner_of_a_mig_instance_opens_its_parent_and_its_own_capabilities(lab: Lab) -> None:
    lab.nvidia(SPLIT, WHOLE)
    owners = (lab.executor(), lab.executor())
    for owner, instance in zip(owners, SPLIT.instances, strict=True):
        done = allocate(lab, owner, 1, "--id", "uuid")
        assert (done.code, done.out, done.err) == (0, f"{instance.uuid}\n", "")
    for owner, mine in zip(owners, SPLIT.instances, strict=True):
        (other,) = [instance for instance in SPLIT.instances if instance != mine]
        assert answers(owner, (SPLIT.node, WHOLE.node)) == {SPLIT.node: OPEN, WHOLE.node: DENIED}
        told = answers(
            owner, (*SPLIT.capability_nodes(mine), *SPLIT.capability_nodes(other), CONFIG, MONITOR), os.O_RDONLY
        )
        assert told == {
            **dict.fromkeys(SPLIT.capability_nodes(mine), OPEN),
            **dict.fromkeys((*SPLIT.capability_nodes(other), CONFIG, MONITOR), DENIED),
        }
    assert states(lab) == dict.fromkeys([owner.pid for owner in owners], "in force")
    assert list(held(lab).values()) == ["0:0", "0:1"]


def test_the_owner_of_a_whole_gpu_opens_no_instance_of_another(lab: Lab) -> None:
    lab.nvidia(SPLIT, WHOLE)
    confined(lab, 2)
    owner = confined(lab, 1)
    every = [node for instance in SPLIT.instances for node in SPLIT.capability_nodes(instance)]
    assert answers(owner, (SPLIT.node, WHOLE.node)) == {SPLIT.node: DENIED, WHOLE.node: OPEN}
    assert answers(owner, every, os.O_RDONLY) == dict.fromkeys(every, DENIED)


def test_a_mig_owner_that_gave_back_opens_neither_parent_nor_instance(lab: Lab) -> None:
    lab.nvidia(SPLIT, WHOLE)
    owner = confined(lab, 1)
    assert call(lab, "deallocateAll", "--owner-pid", str(owner.pid)).code == 0
    paths = (SPLIT.node, WHOLE.node, *SPLIT.capability_nodes(SPLIT.instances[0]))
    assert answers(owner, paths, os.O_RDONLY) == dict.fromkeys(paths, DENIED)


@any_view
def test_a_mig_instance_without_a_capability_node_is_not_handed_out(lab: Lab) -> None:
    lab.nvidia(SPLIT, WHOLE)
    node = SPLIT.capability_nodes(SPLIT.instances[0])[1]
    lab.path(node).unlink()
    owner = lab.executor()
    refused = allocate(lab, owner, 1)
    assert (refused.code, refused.out, refused.err.count("\n")) == (71, "", 1)
    assert node in refused.err
    assert confinements(lab) == []


def test_amd_gpus_are_told_apart_by_their_card_and_render_nodes(lab: Lab) -> None:
    lab.amd(*AMD)
    owners = (lab.executor(), lab.executor())
    assert [allocate(lab, owner, 1, "--id", "index", backend="amd-sysfs").out for owner in owners] == ["0\n", "1\n"]
    every = [node for gpu in AMD[1:] for node in amd_nodes(gpu)]
    for owner, gpu in zip(owners, AMD[1:], strict=False):
        told = answers(owner, (*every, "/dev/kfd"))
        assert told == {**dict.fromkeys(every, DENIED), **dict.fromkeys((*amd_nodes(gpu), "/dev/kfd"), OPEN)}
    told = answers(lab.executor(), every)
    assert told == dict.fromkeys(every, OPEN)


def test_the_graphics_node_of_no_gpu_is_denied(lab: Lab) -> None:
    """A server's management controller is card0; whoever may open a GPU class's nodes gets its own alone."""
    lab.amd(*AMD)
    lab.mknod("/dev/dri/card0", DRM_MAJOR, 0)
    owner = lab.executor()
    assert allocate(lab, owner, 1, backend="amd-sysfs").code == 0
    assert owner.try_open("/dev/dri/card0") == DENIED


@any_view
def test_an_amd_gpu_without_its_node_is_not_handed_out(lab: Lab) -> None:
    lab.amd(*AMD)
    for node in amd_nodes(AMD[1]):
        lab.path(node).unlink()
    owner = lab.executor()
    refused = allocate(lab, owner, 1, backend="amd-sysfs")
    assert (refused.code, refused.out, refused.err.count("\n")) == (71, "", 1)
    assert confinements(lab) == []


def test_partitions_of_an_amd_gpu_have_a_render_node_each(lab: Lab) -> None:
    """That of the first is the PCI device's, those of the others are platform devices' (amdgpu_xcp)."""
    lab.amd(KfdCpu(), *PARTITIONS)
    for name in ("card2", "renderD129"):
        shutil.rmtree(lab.path(f"/sys/bus/pci/devices/0000:c1:00.0/drm/{name}"))
    owners = (lab.executor(), lab.executor())
    assert [allocate(lab, owner, 1, backend="amd-sysfs").code for owner in owners] == [0, 0]
    every = ("/dev/dri/renderD128", "/dev/dri/card1", "/dev/dri/renderD129", "/dev/dri/card2")
    assert list(answers(owners[0], every).values()) == [OPEN, OPEN, DENIED, DENIED]
    assert list(answers(owners[1], every).values()) == [DENIED, DENIED, OPEN, DENIED]


@any_view
def test_partitions_that_can_not_be_told_apart_are_not_handed_out(lab: Lab) -> None:
    lab.amd(KfdCpu(), *PARTITIONS)
    refused = allocate(lab, lab.executor(), 1, backend="amd-sysfs")
    assert (refused.code, refused.out, refused.err.count("\n")) == (71, "", 1)
    assert "belongs to several GPUs" in refused.err
    assert confinements(lab) == []


def test_simulated_gpus_with_nodes_can_be_confined(lab: Lab) -> None:
    for index in range(3):
        lab.mknod(f"/dev/fake{index}", 240, 10 + index)
    backend = "simulated:3,nodes=/dev/fake%d"
    owners = (lab.executor(), lab.executor())
    for owner in owners:
        done = allocate(lab, owner, 1, backend=backend)
        assert (done.code, done.out, done.err) == (0, "0\n", "")
    paths = [f"/dev/fake{index}" for index in range(3)]
    assert list(answers(owners[0], paths).values()) == [OPEN, DENIED, DENIED]
    assert list(answers(owners[1], paths).values()) == [DENIED, OPEN, DENIED]
    assert call(lab, "deallocateAll", "--owner-pid", str(owners[0].pid), backend=backend).code == 0
    assert answers(owners[0], paths) == dict.fromkeys(paths, DENIED)


@any_view
def test_without_a_driver_nothing_is_confined(lab: Lab) -> None:
    lab.nvidia(faults=(fail("nvmlInit_v2", "NVML_ERROR_DRIVER_NOT_LOADED"),))
    owner = lab.executor()
    refused = allocate(lab, owner, 1)
    assert (refused.code, refused.out, refused.err.count("\n")) == (71, "", 1)
    assert confinements(lab) == []


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_gpu_that_appears_later_is_denied(lab: Lab) -> None:
    lab.nvidia(*CARDS)
    owner, free = confined(lab, 2), lab.executor()
    late = Card(4, minor=12, drm=("card9", "renderD140"))
    lab.nvidia(*CARDS, late)
    assert (opens(owner, (*CARDS, late)), opens(free, (*CARDS, late))) == ({0, 1}, {0, 1, 2, 3, 4})
    other = confined(lab, 3)
    assert opens(other, (*CARDS, late)) == {2, 3, 4}


@pytest.mark.parametrize("view", ["v1"], indirect=True)
def test_a_gpu_that_appears_later_is_denied_once_reclaim_has_seen_it(lab: Lab) -> None:
    lab.nvidia(*CARDS)
    owner = confined(lab, 2)
    late = Card(4, minor=12, drm=("card9", "renderD140"))
    lab.nvidia(*CARDS, late)
    done = call(lab, "reclaim")
    assert (done.code, done.err) == (0, "")
    assert opens(owner, (*CARDS, late)) == {0, 1}


@any_view
def test_indexes_that_move_do_not_move_the_confinement(lab: Lab) -> None:
    """A GPU falls off the bus, and those after it count one less."""
    lab.nvidia(*CARDS)
    first, owner = confined(lab, 1), confined(lab, 2)
    lab.nvidia(*CARDS[1:])
    again = allocate(lab, owner, 2, "--id", "index")
    assert (again.code, again.out) == (0, "0,1\n")
    assert (opens(owner), opens(first)) == ({1, 2}, {0})
