"""An owner with several resources, also asked for from inside its confinement, where NVML shows its GPUs alone."""

from __future__ import annotations

import pytest

from tests.isolation.agent import Agent
from tests.isolation.confining import (
    CARDS,
    allocate,
    any_view,
    confined,
    confinement,
    confinements,
    held,
    opens,
    states,
)
from tests.isolation.installation import CURRENT, SCRIPT
from tests.isolation.lab import FLINK, Lab
from tests.support.script import Result

SETTINGS = "[flink-gpu-discovery]\nbackend = nvml\nresources = gpu, fpga\n"
SEES = ("/usr/bin/python3", "-IS", f"{CURRENT}/bin/flink-gpu-discovery", "inventory", "--backend", "nvml")


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    lab.settings(SETTINGS)
    return lab


def ask(agent: Agent, amount: int, resource: str = "fpga") -> Result:
    """As Flink does: the task executor itself calls."""
    return agent.call(SCRIPT, str(amount), "--isolate", "--resource", resource)


def seen(agent: Agent) -> int:
    """How many GPUs NVML shows it."""
    return agent.call(*SEES).out.count("GPU-0")


def test_a_second_resource_adds(lab: Lab) -> None:
    owner = confined(lab, 1)
    folder = confinement(lab, owner)
    done = allocate(lab, owner, 2, "--resource", "fpga")
    assert (done.code, done.out, done.err) == (0, "1,2\n", "")
    assert opens(owner) == {0, 1, 2}
    assert confinement(lab, owner) == folder


def test_an_older_call_repeated_takes_nothing_away_and_opens_nothing(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert allocate(lab, owner, 1, "--resource", "fpga").code == 0
    for resource, line in (("gpu", "0\n"), ("fpga", "1\n"), ("gpu", "0\n")):
        again = allocate(lab, owner, 1, "--resource", resource)
        assert (again.code, again.out, again.err) == (0, line, "")
        assert opens(owner) == {0, 1}
    assert states(lab) == {owner.pid: "in force"}


@any_view
def test_a_refused_second_resource_leaves_the_first(lab: Lab) -> None:
    owner = confined(lab, 2)
    refused = allocate(lab, owner, 3, "--resource", "fpga")
    assert (refused.code, refused.out) == (69, "")
    assert opens(owner) == {0, 1}
    assert held(lab) == {owner.pid: "0,1"}


@pytest.mark.parametrize("uid", [0, FLINK], ids=["root", "flink"])
def test_a_confined_owner_asks_for_more(lab: Lab, uid: int) -> None:
    other = confined(lab, 1)
    owner = lab.executor(uid)
    assert ask(owner, 1, "gpu").out == "0\n"
    assert (seen(owner), opens(owner)) == (1, {1})
    done = ask(owner, 2)
    assert (done.code, done.out) == (0, "1,2\n")
    assert (seen(owner), opens(owner), opens(other)) == (3, {1, 2, 3}, {0})


@pytest.mark.parametrize("uid", [0, FLINK], ids=["root", "flink"])
def test_a_confined_owner_repeats_its_call(lab: Lab, uid: int) -> None:
    owner = lab.executor(uid)
    for _ in range(2):
        assert ask(owner, 2, "gpu").out == "0,1\n"
        assert opens(owner) == {0, 1}


@pytest.mark.parametrize("uid", [0, FLINK], ids=["root", "flink"])
def test_a_child_of_a_confined_owner_asks_for_its_owner(lab: Lab, uid: int) -> None:
    owner = lab.executor(uid)
    assert ask(owner, 1, "gpu").code == 0
    grandchild = owner.child().child()
    done = ask(grandchild, 1)
    assert (done.code, done.out) == (0, "1\n")
    assert opens(owner) == opens(grandchild) == {0, 1}
    assert held(lab) == {owner.pid: "0,1"}
    assert len(confinements(lab)) == 1


@pytest.mark.parametrize("uid", [0, FLINK], ids=["root", "flink"])
def test_a_child_gives_back_for_its_owner(lab: Lab, uid: int) -> None:
    owner = lab.executor(uid)
    assert ask(owner, 2, "gpu").code == 0
    child = owner.child()
    done = child.call(SCRIPT, "deallocateAll", "--isolate")
    assert (done.code, done.out) == (0, "")
    assert opens(owner) == opens(child) == set()
    assert held(lab) == {}


def test_what_outlives_its_owner_gets_nothing(lab: Lab) -> None:
    owner = confined(lab, 1)
    child = owner.child()
    owner.kill()
    refused = ask(child, 1)
    assert (refused.code, refused.out) == (64, "")
    assert "has ended" in refused.err
    assert opens(child) == {0}


@any_view
def test_the_ordinals_of_a_second_resource_count_all_of_the_owner_s_gpus(lab: Lab) -> None:
    owner = confined(lab, 1)
    bystander = confined(lab, 1)
    assert allocate(lab, owner, 1, "--resource", "fpga").out == "1\n"
    assert allocate(lab, owner, 1, "--resource", "fpga", "--id", "index").out == "2\n"
    assert (opens(owner), opens(bystander)) == ({0, 2}, {1})
