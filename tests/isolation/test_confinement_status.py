"""``status`` asks the kernel what each owner can open, rather than the ledger."""

from __future__ import annotations

import json

import pytest

from tests.isolation.confining import (
    CARDS,
    allocate,
    any_view,
    attach,
    call,
    confined,
    confinement,
    denying,
    detach,
    give_back,
    records,
    states,
)
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, Lab

v2 = pytest.mark.parametrize("view", WITH_V2, indirect=True)
v1 = pytest.mark.parametrize("view", ["v1"], indirect=True)


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def test_a_confinement_in_force_says_so(lab: Lab) -> None:
    owner = confined(lab, 2)
    child = owner.child()
    told = call(lab, "status")
    assert (told.code, told.err) == (0, "")
    lines = told.out.splitlines()
    assert lines[0].split()[-2:] == ["CONFINEMENT", "CGROUP"]
    assert ["in force" in line and line.endswith(confinement(lab, owner).name) for line in lines[1:]] == [True, True]
    assert {record["confinement"] for record in records(lab)} == {"in force"}
    assert child.membership() == owner.membership()


def test_looking_changes_nothing(lab: Lab) -> None:
    owner = confined(lab, 2)
    assert owner.cgroup is not None
    owner.cgroup.join(owner.pid)
    before = (owner.membership(), lab.path("/run/flink-gpu-discovery/root/ledger").read_bytes())
    assert states(lab)[owner.pid].startswith("broken")
    assert (owner.membership(), lab.path("/run/flink-gpu-discovery/root/ledger").read_bytes()) == before


def test_an_owner_that_was_let_out_is_told_of(lab: Lab) -> None:
    owner, other = confined(lab, 1), confined(lab, 1)
    assert owner.cgroup is not None
    owner.cgroup.join(owner.pid)
    told = states(lab)
    assert told[owner.pid].startswith(f"broken: pid {owner.pid} (python3) is not in ")
    assert told[other.pid] == "in force"


@v2
def test_a_program_that_was_taken_away_is_told_of(lab: Lab) -> None:
    owner = confined(lab, 1)
    detach(confinement(lab, owner))
    assert states(lab)[owner.pid].startswith("broken: /dev/")
    assert allocate(lab, owner, 1).code == 0
    assert states(lab) == {owner.pid: "in force"}


@v2
def test_a_program_of_somebody_else_is_told_of(lab: Lab) -> None:
    owner = confined(lab, 1)
    attach(confinement(lab, owner), denying((195, CARDS[0].minor)), 0)
    assert states(lab)[owner.pid].startswith(f"broken: {CARDS[0].node} is allotted but denied")


@v1
@pytest.mark.parametrize("entry", ["a", "c 195:0 rw", "c 226:3 rwm"])
def test_a_list_that_was_opened_is_told_of(lab: Lab, entry: str) -> None:
    owner = confined(lab, 1)
    (confinement(lab, owner) / "devices.allow").write_text(entry, encoding="ascii")
    assert states(lab)[owner.pid].startswith("broken: /dev/")


@v1
def test_a_list_that_was_narrowed_is_told_of(lab: Lab) -> None:
    owner = confined(lab, 1)
    (confinement(lab, owner) / "devices.deny").write_text(f"c 195:{CARDS[0].minor} rwm", encoding="ascii")
    assert states(lab)[owner.pid].startswith(f"broken: {CARDS[0].node}")


def test_a_removed_cgroup_is_told_of(lab: Lab) -> None:
    owner = confined(lab, 1)
    folder = confinement(lab, owner)
    assert owner.cgroup is not None
    owner.cgroup.join(owner.pid)
    folder.rmdir()
    assert states(lab)[owner.pid].startswith("gone")


def test_a_dead_owner_s_cgroup_is_told_of(lab: Lab) -> None:
    owner, other = confined(lab, 1), confined(lab, 1)
    left = other.child()
    for agent in (owner, other):
        agent.kill()
    told = states(lab)
    assert told == {owner.pid: "empty", other.pid: "its owner has ended, others are left in it"}
    left.kill()
    assert set(states(lab).values()) == {"empty"}


@any_view
def test_who_is_not_root_is_told_to_ask_as_root(lab: Lab) -> None:
    owner = confined(lab, 1)
    told = lab.run(SCRIPT, "status", "--isolate", "--json", "--backend", "nvml", uid=FLINK)
    assert (told.code, told.err) == (0, "")
    assert [record["confinement"] for record in json.loads(told.out)["records"]] == ["unknown: ask as root"]
    assert owner.call(SCRIPT, "status", "--isolate", "--backend", "nvml").out.count("unknown: ask as root") == 1


@any_view
def test_an_owner_that_gave_back_is_not_listed(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert give_back(lab, owner).code == 0
    told = call(lab, "status")
    assert told.out == "no GPU is held (/run/flink-gpu-discovery/root/ledger)\n"


def test_a_gpu_that_appears_later_breaks_no_confinement_once_reclaim_has_seen_it(lab: Lab) -> None:
    owner = confined(lab, 1)
    lab.mknod("/dev/nvidia77", 195, 77)
    expected = "broken: /dev/nvidia77" if lab.view == "v1" else "in force"
    assert states(lab)[owner.pid].startswith(expected)
    assert call(lab, "reclaim").code == 0
    assert states(lab) == {owner.pid: "in force"}
