"""The limits that an owner's cgroup has already stay in force, and ours with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.cgroup import Cgroup
from tests.isolation.confining import (
    CARDS,
    DENIED,
    OPEN,
    allocate,
    answers,
    attach,
    call,
    confinements,
    denying,
    give_back,
    opens,
    states,
    untouched,
)
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.lab import Lab

MULTI, OVERRIDE = 2, 1
# What systemd lets through with DevicePolicy=closed, and the terminals.
CLOSED = (*(f"c 1:{minor} rwm" for minor in (3, 5, 7, 8, 9)), "c 5:* rwm", "c 136:* rw", "b *:* m", "c *:* m")
GPUS = ("c 195:* rwm", "c 226:* rwm", "c 511:* rwm")
v1 = pytest.mark.parametrize("view", ["v1"], indirect=True)
v2 = pytest.mark.parametrize("view", WITH_V2, indirect=True)


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def below(unit: Cgroup, lab: Lab) -> Agent:
    """An owner two cgroups below the one that has limits."""
    return lab.executor(cgroup=unit.child("slice/leaf"))


def folder_v2(cgroup: Cgroup) -> Path:
    assert cgroup.v2 is not None
    return cgroup.v2


@v1
def test_below_a_list_of_what_is_denied(lab: Lab) -> None:
    unit = lab.cgroup("unit")
    unit.limit_v1("c 195:0 rwm", "c 226:2 rwm", "c 226:129 rwm", "c 1:7 rwm")  # card 1 and /dev/full
    owner = below(unit, lab)
    assert allocate(lab, owner, 1).code == 0
    assert opens(owner) == {0}
    assert owner.try_open("/dev/full") == DENIED


@v1
@pytest.mark.parametrize(
    "entries",
    [["c *:* rwm"], ["a"], ["b *:* rwm", "c *:* rwm"], [*CLOSED, *GPUS], [*CLOSED, "c 226:* rw", *GPUS]],
    ids=["container", "all", "blocks too", "closed", "closed with overlaps"],
)
def test_below_a_list_of_what_is_allowed(lab: Lab, entries: list[str]) -> None:
    unit = lab.cgroup("unit")
    unit.allow_list_v1(entries)
    owner = below(unit, lab)
    child = owner.child()
    done = allocate(lab, owner, 2)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert opens(owner) == opens(child) == {0, 1}
    assert states(lab) == {owner.pid: "in force"}
    further = allocate(lab, owner, 1, "--resource", "fpga")
    assert (further.code, further.err) == (0, "")
    assert opens(owner) == {0, 1, 2}
    assert give_back(lab, owner).code == 0
    assert opens(owner) == set()
    again = allocate(lab, owner, 1)
    assert (again.code, again.err) == (0, "")
    assert opens(owner) == {0}


@v1
def test_what_a_list_does_not_allow_stays_denied(lab: Lab) -> None:
    unit = lab.cgroup("unit")
    unit.allow_list_v1([*CLOSED, *GPUS])
    owner = below(unit, lab)
    lab.mknod("/dev/other", 240, 1)
    assert allocate(lab, owner, 1).code == 0
    assert answers(owner, ("/dev/other", "/dev/null")) == {"/dev/other": DENIED, "/dev/null": "opened"}


def test_a_unit_that_allows_no_graphics_nodes(lab: Lab) -> None:
    """As with ``DeviceAllow=char-nvidia`` alone: CUDA would work, so it is confined, or told what to add."""
    unit = lab.cgroup("unit")
    if unit.v2 is not None:
        attach(unit.v2, denying(*((226, minor) for card in (1, 2, 3, 4) for minor in (card, 127 + card))), MULTI)
    else:
        unit.allow_list_v1([*CLOSED, "c 195:* rwm", "c 511:* rwm"])
    owner = below(unit, lab)
    done = allocate(lab, owner, 1)
    if done.code == 71:
        assert "DeviceAllow=char-drm" in done.err
        assert confinements(lab) == []
        return
    assert (done.code, done.out) == (0, "0\n")
    told = answers(owner, [*(card.node for card in CARDS), *CARDS[0].drm_nodes])
    assert told == {
        **{card.node: DENIED for card in CARDS},
        CARDS[0].node: OPEN,
        **dict.fromkeys(CARDS[0].drm_nodes, DENIED),
    }


@v1
def test_a_gpu_that_the_unit_may_not_open_is_not_handed_out(lab: Lab) -> None:
    unit = lab.cgroup("unit")
    unit.limit_v1("c 195:3 rwm")
    owner = below(unit, lab)
    refused = allocate(lab, owner, 1)
    assert refused.code in (71, 77)
    assert (refused.out, refused.err.count("\n")) == ("", 1)
    assert confinements(lab) == []
    assert call(lab, "status").out.startswith("no GPU is held")


@v2
@pytest.mark.parametrize("above", [1, 2, 3])
def test_below_device_programs_of_others(lab: Lab, above: int) -> None:
    unit = lab.cgroup("unit")
    owner = below(unit, lab)
    folders = [folder_v2(unit), folder_v2(unit.child("slice")), folder_v2(unit.child("slice/leaf"))][:above]
    for place, folder in enumerate(folders):
        attach(folder, denying((1, 5 + 2 * place)), MULTI)  # /dev/zero, /dev/full, /dev/urandom
    attach(folders[0], denying((195, 4)), MULTI)  # a second one in the same cgroup
    done = allocate(lab, owner, 2)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert opens(owner) == {0, 1}
    denied = ("/dev/zero", "/dev/full", "/dev/urandom")[:above]
    assert answers(owner, denied) == dict.fromkeys(denied, DENIED)
    assert states(lab) == {owner.pid: "in force"}
    assert give_back(lab, owner).code == 0
    assert opens(owner) == set()
    assert answers(owner, denied) == dict.fromkeys(denied, DENIED)


@v2
def test_a_limit_that_comes_later_holds_as_well(lab: Lab) -> None:
    unit = lab.cgroup("unit")
    owner = below(unit, lab)
    assert allocate(lab, owner, 2).code == 0
    attach(folder_v2(unit), denying((195, CARDS[0].minor), (1, 5)), MULTI)
    assert answers(owner, [*(card.node for card in CARDS), "/dev/zero"]) == {
        CARDS[0].node: DENIED,
        CARDS[1].node: OPEN,
        CARDS[2].node: DENIED,
        CARDS[3].node: DENIED,
        "/dev/zero": DENIED,
    }


@v2
@pytest.mark.parametrize("flags", [0, OVERRIDE], ids=["exclusive", "overridable"])
def test_a_program_that_ours_would_take_out_of_force_is_a_refusal(lab: Lab, flags: int) -> None:
    unit = lab.cgroup("unit")
    owner = below(unit, lab)
    attach(folder_v2(unit), denying((1, 5)), flags)
    refused = allocate(lab, owner, 1)
    assert refused.code in (71, 77)
    assert (refused.out, refused.err.count("\n")) == ("", 1)
    assert "program" in refused.err
    assert owner.try_open("/dev/zero") == DENIED
    untouched(lab, owner)


@v2
def test_a_gpu_that_a_program_above_denies_is_not_handed_out(lab: Lab) -> None:
    unit = lab.cgroup("unit")
    owner = below(unit, lab)
    attach(folder_v2(unit), denying((195, CARDS[0].minor)), MULTI)
    refused = allocate(lab, owner, 1)
    assert (refused.code, refused.out) == (71, "")
    assert CARDS[0].node in refused.err
    assert confinements(lab) == []
    assert opens(owner, CARDS[1:]) == {1, 2, 3}


def test_an_owner_at_the_hierarchy_s_top_is_confined(lab: Lab) -> None:
    owner = lab.executor()
    assert owner.cgroup is not None
    for folder in owner.cgroup.folders:
        (folder.parents[1] / "cgroup.procs").write_text(str(owner.pid), encoding="ascii")
    try:
        assert allocate(lab, owner, 1).code == 0
        assert opens(owner) == {0}
        owner.kill()
        assert call(lab, "reclaim").code == 0
        top = owner.cgroup.folders[-1].parents[1]
        assert not list(top.glob(f"flink-gpu-{owner.pid}-*"))
    finally:
        for folder in owner.cgroup.folders:
            for left in folder.parents[1].glob(f"flink-gpu-{owner.pid}-*"):
                left.rmdir()
