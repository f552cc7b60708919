"""What is given back can't be opened any more, and goes to others."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.isolation.confining import (
    CARDS,
    allocate,
    any_view,
    call,
    confined,
    confinement,
    confinements,
    give_back,
    held,
    name,
    opens,
)
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import OTHER, Lab
from tests.standins.nvml.faults import fail

NO_DRIVER = (fail("nvmlInit_v2", "NVML_ERROR_DRIVER_NOT_LOADED"),)
ALL = {0, 1, 2, 3}


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def leftover(lab: Lab, name: str) -> list[Path]:
    """An empty cgroup, where an owner's would be."""
    home = lab.cgroup("home")
    folders = [folder / name for folder in home.folders]
    for folder in folders:
        folder.mkdir()
    return folders


def test_an_owner_that_gave_back_can_open_nothing(lab: Lab) -> None:
    owner = confined(lab, 2)
    child = owner.child()
    done = give_back(lab, owner)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert opens(owner) == opens(owner, thread=True) == opens(child) == set()
    assert held(lab) == {}


def test_the_gpus_go_to_others(lab: Lab) -> None:
    owner = confined(lab, 4)
    assert give_back(lab, owner).code == 0
    other = confined(lab, 4)
    assert (opens(owner), opens(other)) == (set(), ALL)


def test_an_owner_that_gave_back_may_ask_again_and_keeps_its_cgroup(lab: Lab) -> None:
    owner = confined(lab, 2)
    folder = confinement(lab, owner)
    assert give_back(lab, owner).code == 0
    other = confined(lab, 1)
    done = allocate(lab, owner, 2)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert (opens(owner), opens(other)) == ({1, 2}, {0})
    assert confinement(lab, owner) == folder


@any_view
def test_giving_back_all_gives_back_every_resource(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert allocate(lab, owner, 1, "--resource", "fpga").code == 0
    assert give_back(lab, owner).code == 0
    assert (opens(owner), held(lab)) == (set(), {})


@any_view
def test_giving_back_twice_is_fine(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert [give_back(lab, owner).code for _ in range(2)] == [0, 0]
    assert opens(owner) == set()


@any_view
def test_giving_back_nothing_confines_nobody(lab: Lab) -> None:
    confined(lab, 1)
    owner = lab.executor()
    assert give_back(lab, owner).code == 0
    assert opens(owner) == ALL
    assert len(confinements(lab)) == 1


def test_giving_back_brings_in_an_owner_that_was_let_out(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert owner.cgroup is not None
    owner.cgroup.join(owner.pid)
    assert give_back(lab, owner).code == 0
    assert opens(owner) == set()


def test_giving_back_works_without_a_driver(lab: Lab) -> None:
    owner = confined(lab, 2)
    lab.nvidia(*CARDS, faults=NO_DRIVER)
    done = give_back(lab, owner)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert opens(owner) == set()


def test_an_owner_gives_back_through_sudo(lab: Lab) -> None:
    lab.settings("[flink-gpu-discovery]\nbackend = nvml\n")
    owner = lab.executor()
    assert owner.call(SCRIPT, "2", "--isolate").out == "0,1\n"
    for words in (("deallocateAll",), ("release", "2")):
        done = owner.call(SCRIPT, *words, "--isolate")
        assert (done.code, done.out, done.err) == (0, "", "")
        assert opens(owner) == set()


def test_a_dead_owner_s_gpus_and_cgroup_are_reclaimed(lab: Lab) -> None:
    owner, other = confined(lab, 2), confined(lab, 1)
    owner.kill()
    done = call(lab, "reclaim")
    assert (done.code, done.err) == (0, "")
    assert done.out.count("reclaimed GPU") == 2
    assert held(lab) == {other.pid: "2"}
    assert confinements(lab) == [confinement(lab, other)]
    assert opens(other) == {2}


def test_a_dead_owner_whose_child_lives_keeps_its_gpus(lab: Lab) -> None:
    owner = confined(lab, 2)
    child, folder = owner.child(), confinement(lab, owner)
    owner.kill()
    done = call(lab, "reclaim")
    assert done.code == 0
    assert f"GPU 0 is kept: its owner pid {owner.pid}" in done.err
    assert f"still used by pid {child.pid} in its owner's cgroup" in done.err
    assert (held(lab), opens(child)) == ({owner.pid: "0,1"}, {0, 1})
    child.kill()
    assert call(lab, "reclaim").code == 0
    assert held(lab) == {}
    assert not folder.exists()


def test_a_child_is_narrowed_before_its_gpus_go_to_others(lab: Lab) -> None:
    owner = confined(lab, 2)
    child, folder = owner.child(), confinement(lab, owner)
    owner.kill()
    done = call(lab, "reclaim", "--take-busy")
    assert done.code == 0
    assert (held(lab), opens(child)) == ({}, set())
    other = confined(lab, 4)
    assert (opens(child), opens(other)) == (set(), ALL)
    child.kill()
    assert call(lab, "reclaim").code == 0
    assert not folder.exists()


def test_check_dead_takes_over_from_the_dead(lab: Lab) -> None:
    dead, busy = confined(lab, 2), confined(lab, 1)
    child, folder = busy.child(), confinement(lab, dead)
    dead.kill()
    busy.kill()
    owner = lab.executor()
    done = allocate(lab, owner, 3, "--check-dead")
    assert (done.code, done.out) == (0, "0,1,2\n")
    assert (opens(owner), opens(child)) == ({0, 1, 3}, {2})
    assert not folder.exists()


def test_a_takeover_narrows_what_is_left_of_the_dead(lab: Lab) -> None:
    dead = confined(lab, 2)
    child = dead.child()
    dead.kill()
    owner = lab.executor()
    assert allocate(lab, owner, 3, "--check-dead").code == 69
    assert opens(child) == {0, 1}
    done = allocate(lab, owner, 3, "--check-dead", "--take-busy")
    assert done.code == 0
    assert (opens(owner), opens(child)) == ({0, 2, 3}, {1})


def test_force_takes_from_a_living_owner(lab: Lab) -> None:
    owner = confined(lab, 2)
    done = call(lab, "reclaim", "--gpu", CARDS[0].uuid, "--force")
    assert (done.code, done.err) == (0, "")
    assert (opens(owner), held(lab)) == ({1}, {owner.pid: "1"})
    assert call(lab, "reclaim", "--owner", str(owner.pid), "--force").code == 0
    assert (opens(owner), held(lab)) == (set(), {})


@any_view
def test_nothing_is_taken_from_a_living_owner_without_force(lab: Lab) -> None:
    owner = confined(lab, 2)
    assert call(lab, "reclaim", "--owner", str(owner.pid)).code == 64
    assert call(lab, "reclaim", "--take-busy").code == 0
    assert (opens(owner), held(lab)) == ({0, 1}, {owner.pid: "0,1"})


def test_empty_cgroups_under_our_name_are_swept(lab: Lab) -> None:
    owner = confined(lab, 1)
    ours, others = leftover(lab, "flink-gpu-4194303-77"), leftover(lab, "flink-gpu-notes")
    assert call(lab, "reclaim").code == 0
    assert [folder.exists() for folder in ours] == [False] * len(ours)
    assert [folder.exists() for folder in others] == [True] * len(others)
    assert confinement(lab, owner).exists()


def test_an_empty_cgroup_of_a_living_process_is_not_swept(lab: Lab) -> None:
    """A call with another ledger may be about to move it in."""
    confined(lab, 1)
    folders = leftover(lab, name(lab.executor()))
    assert call(lab, "reclaim").code == 0
    assert [folder.exists() for folder in folders] == [True] * len(folders)


def test_the_cgroup_of_an_owner_that_gave_back_and_ended_is_swept(lab: Lab) -> None:
    owner = confined(lab, 1)
    folder = confinement(lab, owner)
    assert give_back(lab, owner).code == 0
    assert call(lab, "reclaim").code == 0
    assert folder.exists()
    owner.kill()
    assert call(lab, "reclaim").code == 0
    assert not folder.exists()


def test_reclaiming_works_without_a_driver(lab: Lab) -> None:
    dead, living = confined(lab, 1), confined(lab, 1)
    dead.kill()
    lab.nvidia(*CARDS, faults=NO_DRIVER)
    done = call(lab, "reclaim", "--take-busy")
    assert done.code == 0
    assert (held(lab), opens(living)) == ({living.pid: "1"}, {1})


def test_a_process_in_another_user_s_confinement_gets_nothing(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert owner.cgroup is not None
    stranger = lab.executor(OTHER, cgroup=owner.cgroup.child(name(owner)))
    refused = allocate(lab, stranger, 1)
    assert (refused.code, refused.out) == (64, "")
    assert opens(stranger) == {0}
    assert held(lab) == {owner.pid: "0"}


@any_view
def test_a_gpu_that_is_not_seen_for_a_moment_stays_open_to_its_owner(lab: Lab) -> None:
    owner = confined(lab, 2)
    lab.nvidia(*[card for card in CARDS if card.index != 1])
    done = call(lab, "reclaim")
    assert (done.code, done.err.count("\n")) == (0, 1), done
    assert f"{CARDS[1].uuid}, which it holds, is not seen now" in done.err
    assert opens(owner) == {0, 1}
    assert allocate(lab, owner, 1, "--resource", "more").code == 71
    lab.nvidia(*CARDS)
    assert allocate(lab, owner, 1, "--resource", "more").code == 0
    assert opens(owner) == {0, 1, 2}
