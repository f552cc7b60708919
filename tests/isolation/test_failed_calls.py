"""A call that fails leaves no record and no cgroup, and everybody where they were."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.confining import (
    CARDS,
    LEDGER,
    allocate,
    answers,
    any_view,
    confined,
    confinement,
    held,
    opens,
    states,
    untouched,
)
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import Lab
from tests.standins.nvml.faults import hang

WORDS = (SCRIPT, "2", "--isolate", "--backend", "nvml", "--owner-pid")


class Family:
    """An owner, a child in the same cgroup, and one in another."""

    def __init__(self, lab: Lab) -> None:
        self.owner = lab.executor()
        self.child, self.elsewhere = self.owner.child(), self.owner.child()
        lab.cgroup("elsewhere").join(self.elsewhere.pid)
        self._before = [agent.membership() for agent in self.agents]

    @property
    def agents(self) -> tuple[Agent, Agent, Agent]:
        return self.owner, self.child, self.elsewhere

    def check_untouched(self, lab: Lab) -> None:
        untouched(lab, *self.agents)
        assert [agent.membership() for agent in self.agents] == self._before


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def broken_pipe(lab: Lab, pid: int) -> int:
    """Call with standard output's reader gone."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return lab.start(*WORDS, str(pid), output=writer).wait(timeout=20)
    finally:
        os.close(writer)


def closed(lab: Lab, pid: int) -> int:
    """Call without standard output."""
    return lab.run("sh", "-c", f'exec {" ".join(WORDS)} "$0" >&-', str(pid)).code


def full(lab: Lab, pid: int) -> int:
    """Call with standard output on a full device."""
    return lab.run("sh", "-c", f'exec {" ".join(WORDS)} "$0" >/dev/full', str(pid)).code


@pytest.mark.parametrize("way", [broken_pipe, closed, full])
def test_an_answer_that_nobody_gets_is_taken_back(lab: Lab, way: Callable[[Lab, int], int]) -> None:
    family = Family(lab)
    assert way(lab, family.owner.pid) == 74
    family.check_untouched(lab)
    assert allocate(lab, family.owner, 4).code == 0


def test_an_answer_of_a_further_resource_that_nobody_gets_is_taken_back(lab: Lab) -> None:
    owner = confined(lab, 1)
    folder = confinement(lab, owner)
    words = f'exec {" ".join(WORDS)} "$0" --resource fpga >&-'
    assert lab.run("sh", "-c", words, str(owner.pid)).code == 74
    assert (opens(owner), held(lab), states(lab)) == ({0}, {owner.pid: "0"}, {owner.pid: "in force"})
    assert confinement(lab, owner) == folder


def test_a_repeated_call_that_nobody_hears_changes_nothing(lab: Lab) -> None:
    owner = confined(lab, 2)
    assert broken_pipe(lab, owner.pid) == 74
    assert (opens(owner), held(lab), states(lab)) == ({0, 1}, {owner.pid: "0,1"}, {owner.pid: "in force"})


def test_too_few_gpus_confine_nobody(lab: Lab) -> None:
    family = Family(lab)
    refused = allocate(lab, family.owner, 5)
    assert (refused.code, refused.out, refused.err.count("\n")) == (69, "", 1)
    family.check_untouched(lab)
    other = confined(lab, 3)
    refused = allocate(lab, family.owner, 2)
    assert (refused.code, refused.out) == (69, "")
    assert f"3 held by pid {other.pid} (python3): 0,1,2" in refused.err
    assert opens(family.owner) == {0, 1, 2, 3}


@any_view
def test_a_driver_that_hangs_confines_nobody(lab: Lab) -> None:
    family = Family(lab)
    lab.nvidia(*CARDS, faults=(hang("nvmlDeviceGetUUID", 1),))
    refused = allocate(lab, family.owner, 2, "--deadline", "1")
    assert (refused.code, refused.out, refused.err.count("\n")) == (75, "", 1)
    lab.nvidia(*CARDS)
    family.check_untouched(lab)


@any_view
def test_a_lock_that_is_held_confines_nobody(lab: Lab) -> None:
    confined(lab, 0)
    other = confined(lab, 1)
    owner = lab.executor()
    with lab.path(f"{LEDGER}.lock").open("rb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        refused = allocate(lab, owner, 2, "--deadline", "1")
    assert (refused.code, refused.out, refused.err.count("\n")) == (75, "", 1)
    assert opens(owner) == {0, 1, 2, 3}
    assert held(lab) == {other.pid: "0"}


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_frozen_cgroup_is_left_as_it_was(lab: Lab) -> None:
    """Nothing can be proven in it before the deadline."""
    family = Family(lab)
    assert family.owner.cgroup is not None
    assert family.owner.cgroup.v2 is not None
    freezer = family.owner.cgroup.v2 / "cgroup.freeze"
    freezer.write_text("1", encoding="ascii")
    try:
        refused = allocate(lab, family.owner, 2, "--deadline", "1")
    finally:
        freezer.write_text("0", encoding="ascii")
    assert (refused.code, refused.out, refused.err.count("\n")) == (75, "", 1)
    family.check_untouched(lab)


@any_view
def test_an_owner_that_has_ended_gets_nothing(lab: Lab) -> None:
    owner = lab.executor()
    owner.kill()
    refused = allocate(lab, owner, 1)
    assert (refused.code, refused.out, refused.err.count("\n")) == (64, "", 1)
    untouched(lab)


@any_view
def test_a_ledger_that_can_not_be_written_confines_nobody(lab: Lab) -> None:
    family = Family(lab)
    confined(lab, 0)
    mounted = lab.run(
        "sh", "-c", "mkdir -p /run/flink-gpu-discovery && mount -n -t tmpfs -o ro,mode=755 x /run/flink-gpu-discovery"
    )
    assert mounted.code == 0, mounted.err
    refused = allocate(lab, family.owner, 1)
    assert (refused.code, refused.out, refused.err.count("\n")) == (74, "", 1)
    family.check_untouched(lab)


def test_a_cgroup_without_room_for_another_is_a_refusal(lab: Lab) -> None:
    if lab.view == "v1":
        pytest.skip("v1 counts no descendants")
    family = Family(lab)
    assert family.owner.cgroup is not None
    limit = Path(str(family.owner.cgroup.v2), "cgroup.max.descendants")
    limit.write_text("0", encoding="ascii")
    refused = allocate(lab, family.owner, 1)
    assert (refused.code, refused.out, refused.err.count("\n")) == (71, "", 1)
    assert "cgroup.max.descendants" in refused.err
    family.check_untouched(lab)


def test_a_failed_call_opens_nothing_of_others(lab: Lab) -> None:
    one, two = confined(lab, 1), confined(lab, 1)
    assert broken_pipe(lab, lab.executor().pid) == 74
    assert (opens(one), opens(two)) == ({0}, {1})
    assert answers(one, ["/dev/null"]) == {"/dev/null": "opened"}
