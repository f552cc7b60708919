"""The whole process is confined: its threads, and what it has started or will start; again after it was let out."""

from __future__ import annotations

import pytest

from tests.isolation.agent import Agent
from tests.isolation.confining import (
    CARDS,
    allocate,
    attach,
    confined,
    confinement,
    denying,
    detach,
    give_back,
    held,
    opens,
    states,
)
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import Lab

ALL = {0, 1, 2, 3}


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def test_threads_and_descendants_of_before_and_after_are_confined(lab: Lab) -> None:
    owner = lab.executor()
    before = [owner.child()]
    before.append(before[0].child())
    assert allocate(lab, owner, 2).code == 0
    after = [owner.child(), before[1].child()]
    assert [opens(agent) for agent in (owner, *before, *after)] == [{0, 1}] * 5
    assert opens(owner, thread=True) == {0, 1}
    assert len({str(agent.membership()) for agent in (owner, *before, *after)}) == 1


def test_a_child_of_another_thread_is_confined(lab: Lab) -> None:
    owner = lab.executor()
    child = Agent(owner._agents, owner.evaluate("spawn()", thread=True), None, owner)
    assert allocate(lab, owner, 1).code == 0
    assert opens(child) == {0}


def test_a_child_that_was_elsewhere_is_brought_in(lab: Lab) -> None:
    owner = lab.executor()
    child = owner.child()
    lab.cgroup("elsewhere").join(child.pid)
    assert allocate(lab, owner, 1).code == 0
    assert opens(child) == {0}


def test_a_sibling_in_the_same_cgroup_stays_free(lab: Lab) -> None:
    sibling = lab.executor()
    owner = lab.executor(cgroup=sibling.cgroup)
    assert allocate(lab, owner, 1).code == 0
    assert (opens(owner), opens(sibling)) == ({0}, ALL)


def test_two_owners_in_the_same_cgroup_are_confined_each(lab: Lab) -> None:
    one = confined(lab, 1)
    two = confined(lab, 1, cgroup=one.cgroup)
    assert (opens(one), opens(two)) == ({0}, {1})


def test_descendants_stay_confined_after_their_owner(lab: Lab) -> None:
    owner = confined(lab, 1)
    child = owner.child()
    grandchild = child.child()
    owner.kill()
    child.kill()
    assert opens(grandchild) == {0}


def test_the_call_itself_is_not_moved(lab: Lab) -> None:
    """Neither the call nor what it is started by may be confined: it must go on seeing every GPU."""
    lab.settings("[flink-gpu-discovery]\nbackend = nvml\n")
    owner = lab.executor()
    calls = [owner.start(SCRIPT, "1", "--isolate") for _ in range(4)]  # the same request, over and over
    assert {(done.code, done.out) for done in [each.finish() for each in calls]} == {(0, "0\n")}
    assert opens(owner) == {0}


def test_an_owner_whose_main_thread_has_ended_is_confined(lab: Lab) -> None:
    owner = lab.executor()
    child = owner.child()
    owner.end_main_thread()
    done = allocate(lab, owner, 2)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert [opens(owner), opens(owner, thread=True), opens(child)] == [{0, 1}] * 3
    assert owner.cgroup is not None
    assert confinement(lab, owner).parent in owner.cgroup.folders
    assert states(lab) == {owner.pid: "in force"}


def test_a_confined_owner_whose_main_thread_ends_keeps_its_confinement(lab: Lab) -> None:
    owner = confined(lab, 2)
    owner.end_main_thread()
    assert opens(owner) == {0, 1}
    assert states(lab) == {owner.pid: "in force"}
    again = allocate(lab, owner, 2)
    assert (again.code, again.out, again.err) == (0, "0,1\n", "")
    assert give_back(lab, owner).code == 0
    assert opens(owner) == set()


def test_a_repeated_call_gives_the_same(lab: Lab) -> None:
    owner = confined(lab, 2)
    folder, before = confinement(lab, owner), owner.membership()
    again = allocate(lab, owner, 2)
    assert (again.code, again.out, again.err) == (0, "0,1\n", "")
    assert (confinement(lab, owner), owner.membership()) == (folder, before)
    assert opens(owner) == {0, 1}
    assert held(lab) == {owner.pid: "0,1"}


def test_a_repeated_call_brings_back_an_owner_that_was_moved_out(lab: Lab) -> None:
    owner = confined(lab, 2)
    child, inside = owner.child(), owner.membership()
    assert owner.cgroup is not None
    for agent in (owner, child):
        owner.cgroup.join(agent.pid)
    assert opens(owner) == opens(child) == ALL
    again = allocate(lab, owner, 2)
    assert (again.code, again.out, again.err) == (0, "0,1\n", "")
    assert opens(owner) == opens(child) == {0, 1}
    assert owner.membership() == child.membership() == inside


def test_a_repeated_call_makes_a_removed_cgroup_again(lab: Lab) -> None:
    owner = confined(lab, 2)
    folder = confinement(lab, owner)
    assert owner.cgroup is not None
    owner.cgroup.join(owner.pid)
    folder.rmdir()
    again = allocate(lab, owner, 2)
    assert (again.code, again.out, again.err) == (0, "0,1\n", "")
    assert opens(owner) == {0, 1}
    assert confinement(lab, owner) == folder


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_repeated_call_renews_a_program_that_was_taken_away(lab: Lab) -> None:
    owner = confined(lab, 2)
    detach(confinement(lab, owner))
    assert opens(owner) == ALL
    assert allocate(lab, owner, 2).code == 0
    assert opens(owner) == {0, 1}


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_repeated_call_replaces_a_program_of_somebody_else(lab: Lab) -> None:
    owner = confined(lab, 2)
    attach(confinement(lab, owner), denying((195, CARDS[0].minor)), 0)
    assert opens(owner, CARDS[1:]) == {1, 2, 3}
    assert allocate(lab, owner, 2).code == 0
    assert opens(owner) == {0, 1}


@pytest.mark.parametrize("view", ["v1"], indirect=True)
def test_a_repeated_call_narrows_a_list_that_was_opened(lab: Lab) -> None:
    owner = confined(lab, 2)
    (confinement(lab, owner) / "devices.allow").write_text("a", encoding="ascii")
    assert opens(owner) == ALL
    assert allocate(lab, owner, 2).code == 0
    assert opens(owner) == {0, 1}
