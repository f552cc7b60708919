"""An owner can open exactly the GPUs that it was given, whoever asks for it and however many owners there are."""

from __future__ import annotations

import stat
from collections.abc import Callable

import pytest

from tests.isolation.cards import Card
from tests.isolation.confining import (
    CARDS,
    CONTROL_NODES,
    DENIED,
    LEDGER,
    OPEN,
    allocate,
    answers,
    any_view,
    begin_allocate,
    call,
    confined,
    confinement,
    confinements,
    held,
    name,
    opens,
    printed,
    records,
)
from tests.isolation.hierarchies import View
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, OTHER, Lab

SETTINGS = "[flink-gpu-discovery]\nbackend = nvml\n"


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def test_an_owner_can_open_its_gpus_and_no_other(lab: Lab) -> None:
    owner, bystander = lab.executor(), lab.executor()
    done = allocate(lab, owner, 2)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert opens(owner) == {0, 1}
    assert opens(bystander) == {0, 1, 2, 3}
    assert held(lab) == {owner.pid: "0,1"}


def test_a_minor_is_not_an_index(lab: Lab) -> None:
    owner = confined(lab, 1)
    told = answers(owner, [f"/dev/nvidia{minor}" for minor in (0, 3, 4, 9)])
    assert told == {"/dev/nvidia3": OPEN, "/dev/nvidia0": DENIED, "/dev/nvidia4": DENIED, "/dev/nvidia9": DENIED}


@any_view
@pytest.mark.parametrize(
    ("kind", "line"),
    [((), "0"), (("--id", "index"), "2"), (("--id", "uuid"), CARDS[2].uuid), (("--id", "ordinal"), "0")],
)
def test_prints_ordinals_unless_told_otherwise(lab: Lab, kind: tuple[str, ...], line: str) -> None:
    confined(lab, 2)
    owner = lab.executor()
    assert allocate(lab, owner, 1, *kind).out == f"{line}\n"
    assert opens(owner) == {2}


def test_two_owners_have_nothing_in_common(lab: Lab) -> None:
    one, two = lab.executor(), lab.executor(OTHER)
    calls = [begin_allocate(lab, owner, 2) for owner in (one, two)]
    indexes = [{int(index) for index in printed(process).split(",")} for process in calls]
    assert indexes[0] | indexes[1] == {0, 1, 2, 3}
    assert [opens(one), opens(two)] == indexes


def test_sixteen_owners_at_once_get_a_gpu_each(view: View, new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(view)
    cards = tuple(Card(index, minor=31 - index, drm=(f"card{index}", f"renderD{143 - index}")) for index in range(16))
    lab.nvidia(*cards)
    owners = [lab.executor() for _ in cards]
    calls = [begin_allocate(lab, owner, 1) for owner in owners]
    indexes = [int(printed(process)) for process in calls]
    assert sorted(indexes) == list(range(16))
    assert [opens(owner, cards) for owner in owners] == [{index} for index in indexes]
    assert held(lab) == {owner.pid: str(index) for owner, index in zip(owners, indexes, strict=True)}


def test_a_task_executor_is_confined_through_sudo(lab: Lab) -> None:
    lab.settings(SETTINGS)
    one, two = lab.executor(FLINK), lab.executor(OTHER)
    for owner, mine in ((one, {0, 1}), (two, {2, 3})):
        done = owner.call(SCRIPT, "2", "--isolate")
        assert (done.code, done.out, done.err) == (0, "0,1\n", "")
        assert opens(owner) == mine
    assert one.call(SCRIPT, "1", "--isolate").code == 64  # another amount than it has
    refused = lab.executor().call(SCRIPT, "1", "--isolate")
    assert (refused.code, refused.out) == (69, "")


def test_root_s_own_task_executor_is_confined_with_a_word_of_warning(lab: Lab) -> None:
    owner = lab.executor(0)
    done = owner.call(SCRIPT, "1", "--isolate", "--backend", "nvml")
    assert (done.code, done.out) == (0, "0\n")
    assert "root" in done.err
    assert opens(owner) == {0}


@any_view
def test_no_gpu_asked_for_confines_nobody(lab: Lab) -> None:
    owner = lab.executor()
    done = allocate(lab, owner, 0)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert confinements(lab) == []
    assert not lab.path(LEDGER).exists()


def test_the_cgroup_lies_below_the_owner_s_own_and_is_root_s(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert owner.cgroup is not None
    folder = confinement(lab, owner)
    assert folder == (owner.cgroup.v2 or owner.cgroup.folders[0]) / name(owner)
    for path in (folder, *folder.iterdir()):
        found = path.stat()
        assert (found.st_uid, found.st_gid) == (0, 0)
        assert not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH), path
    assert records(lab)[0]["cgroup"].endswith(f"/{owner.cgroup.name}/{name(owner)}")


@any_view
def test_the_ledger_may_be_read_by_all_and_changed_by_root(lab: Lab) -> None:
    confined(lab, 1)
    modes = {LEDGER: 0o644, f"{LEDGER}.lock": 0o600, LEDGER.rpartition("/")[0]: 0o755}
    for path, mode in modes.items():
        found = lab.path(path).stat()
        assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (0, 0, mode)
    assert {path.name for path in lab.path(LEDGER).parent.iterdir()} == {"ledger", "ledger.lock"}


def test_a_gpu_that_nobody_lists_is_denied_as_well(lab: Lab) -> None:
    lab.mknod("/dev/nvidia17", 195, 17)
    lab.mknod("/dev/dri/card30", 226, 30)
    owner = confined(lab, 4)
    assert opens(owner) == {0, 1, 2, 3}
    assert answers(owner, ("/dev/nvidia17", "/dev/dri/card30")) == {"/dev/nvidia17": DENIED, "/dev/dri/card30": DENIED}


@any_view
def test_control_nodes_stay_open_to_the_owner_of_no_gpu(lab: Lab) -> None:
    owner = confined(lab, 1)
    assert call(lab, "deallocateAll", "--owner-pid", str(owner.pid)).code == 0
    assert answers(owner, CONTROL_NODES) == dict.fromkeys(CONTROL_NODES, OPEN)


def test_the_major_is_read_from_the_node(view: View, new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(view)
    cards = tuple(Card(index, minor=index + 20, major=240) for index in range(2))
    lab.nvidia(*cards)
    owner = confined(lab, 1)
    assert opens(owner, cards) == {0}
