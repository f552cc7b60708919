"""Where an owner can't be confined, it is told so in one line, gets nothing, and stays as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.isolation.agent import Agent
from tests.isolation.cards import scenario_gpus
from tests.isolation.confining import CARDS, allocate, any_view, call, confined, confinements, held, opens, untouched
from tests.isolation.hierarchies import WITH_V2, View
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, OTHER, SCENARIO, Lab
from tests.standins.nvml.scenario import Scenario, write
from tests.support.script import Result

# A user whom nobody else gives a cgroup to: where a user may write one anywhere, none of its processes is confined.
DELEGATED = 100_000 + os.getpid()
SETTINGS = "[flink-gpu-discovery]\n"


@pytest.fixture
def lab(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    return lab


def check_refused(done: Result, *words: str, codes: tuple[int, ...] = (71,)) -> None:
    """One line, with what is wrong and a mend."""
    assert done.code in codes, done
    assert (done.out, done.err.count("\n")) == ("", 1), done
    assert "; " in done.err
    for word in words:
        assert word in done.err, done.err


def without(lab: Lab, owner: Agent, *capabilities: str) -> Result:
    """Ask as a root that lacks these."""
    words = (SCRIPT, "2", "--isolate", "--backend", "nvml", "--owner-pid", str(owner.pid))
    return lab.run(*words, capabilities=capabilities)


def test_read_only_cgroups(view: View, new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(view, read_only_cgroups=True)
    lab.nvidia(*CARDS)
    owner = lab.executor()
    check_refused(allocate(lab, owner, 1), "writable")
    assert confinements(lab) == []
    assert opens(owner) == {0, 1, 2, 3}


def test_no_hierarchy_at_all(lab: Lab) -> None:
    owner = lab.executor()
    assert lab.run("umount", "-n", "-R", "-l", "/sys/fs/cgroup").code == 0
    check_refused(allocate(lab, owner, 1), "neither cgroup2 nor the v1 devices controller is mounted", "mount")
    assert confinements(lab) == []
    assert opens(owner) == {0, 1, 2, 3}


@pytest.mark.parametrize("view", ["hybrid"], indirect=True)
def test_version_1_is_used_where_version_2_has_gone(lab: Lab) -> None:
    cgroup = lab.cgroup("unit")
    owner = lab.executor(cgroup=cgroup)
    assert cgroup.v2 is not None
    assert cgroup.v1 is not None
    assert lab.run("umount", "-n", "-l", str(cgroup.v2.parents[1])).code == 0
    assert allocate(lab, owner, 1).code == 0
    assert opens(owner) == {0}
    assert [folder.parent for folder in confinements(lab)] == [cgroup.v1]


@pytest.mark.parametrize("lost", [("sys_admin", "bpf"), ("sys_admin", "net_admin")])
def test_without_the_capabilities_for_device_programs(lab: Lab, lost: tuple[str, ...]) -> None:
    owner = lab.executor()
    check_refused(without(lab, owner, *lost), "CAP_SYS_ADMIN", codes=(77,))
    untouched(lab, owner, owner.child())


def test_without_system_administration(lab: Lab) -> None:
    """CAP_BPF and CAP_NET_ADMIN are enough for version 2."""
    owner = lab.executor()
    done = without(lab, owner, "sys_admin")
    if lab.view == "v1":
        check_refused(done, "CAP_SYS_ADMIN", codes=(77,))
        untouched(lab, owner)
    else:
        assert (done.code, done.out, done.err) == (0, "0,1\n", "")
        assert opens(owner) == {0, 1}


@pytest.mark.parametrize("lost", ["setuid", "setgid"])
def test_without_the_capability_for_the_proof(lab: Lab, lost: str) -> None:
    owner = lab.executor()
    child = owner.child()
    check_refused(without(lab, owner, lost), "CAP_SETUID and CAP_SETGID")
    untouched(lab, owner, child)


@pytest.mark.parametrize("capability", ["dac_override", "setfcap", "kill"])
def test_an_owner_with_capabilities_to_undo_it(lab: Lab, capability: str) -> None:
    words = (f"--ambient-caps=+{capability}", f"--inh-caps=+{capability}")
    process = lab.start("setpriv", f"--reuid={FLINK}", f"--regid={FLINK}", "--clear-groups", *words, "sleep", "1000")
    lab.cgroup("unit").join(process.pid)
    done = call(lab, "1", "--owner-pid", str(process.pid))
    check_refused(done, f"CAP_{capability.upper()}")
    untouched(lab)


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
@pytest.mark.parametrize("where", ["domain/threads", "domain"])
def test_a_cgroup_of_threads(lab: Lab, where: str) -> None:
    lab.cgroup("domain/threads").make_threaded()
    owner = lab.executor(cgroup=lab.cgroup(where))
    check_refused(allocate(lab, owner, 1), "threaded", f"/{lab.cgroup(where).name} ")
    untouched(lab, owner)


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
@pytest.mark.parametrize("where", ["unit/slice/leaf", "unit/slice", "unit"])
def test_an_owner_that_may_write_a_cgroup(lab: Lab, where: str) -> None:
    """Its own, or one above."""
    owner = lab.executor(DELEGATED, cgroup=lab.cgroup("unit/slice/leaf"))
    child = owner.child()
    cgroup = lab.cgroup(where)
    cgroup.chown(DELEGATED)
    check_refused(allocate(lab, owner, 1), cgroup.inside_v2, "Delegate=")
    untouched(lab, owner, child)
    cgroup.chown(0)
    assert allocate(lab, owner, 1).code == 0
    assert opens(owner) == opens(child) == {0}


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_cgroup_elsewhere_that_the_owner_may_write_is_no_way_out(lab: Lab) -> None:
    """Version 2 asks for permission on the common ancestor, too."""
    owner = lab.executor(DELEGATED, cgroup=lab.cgroup("unit"))
    elsewhere = lab.cgroup("elsewhere")
    elsewhere.chown(DELEGATED)
    assert allocate(lab, owner, 1).code == 0
    assert owner.write(f"{elsewhere.inside_v2}/cgroup.procs", str(owner.pid)) == "EACCES"


@any_view
def test_a_gpu_whose_minor_nobody_knows(lab: Lab) -> None:
    gpus = scenario_gpus(CARDS)
    file = write(Scenario((*gpus[:3], replace(gpus[3], minor="unsupported"))), lab.path(str(SCENARIO)))
    file.chmod(0o644)
    owner = lab.executor()
    check_refused(allocate(lab, owner, 1), "GPU 3", CARDS[3].uuid)
    untouched(lab, owner)


@any_view
def test_a_gpu_without_its_node(lab: Lab) -> None:
    lab.nvidia(*CARDS, hide=False)
    lab.path(CARDS[2].node).unlink()
    owner = lab.executor()
    check_refused(allocate(lab, owner, 1), CARDS[2].node, "nvidia-modprobe")
    assert confinements(lab) == []
    assert held(lab) == {}


@any_view
def test_a_node_that_is_no_device(lab: Lab) -> None:
    lab.nvidia(*CARDS, hide=False)
    lab.path(CARDS[2].node).unlink()
    lab.path(CARDS[2].node).write_text("", encoding="ascii")
    check_refused(allocate(lab, lab.executor(), 1), f"{CARDS[2].node} of GPU 2 is no device node")
    assert confinements(lab) == []


@any_view
def test_two_gpus_with_one_device_number(lab: Lab) -> None:
    for index in range(3):
        lab.mknod(f"/dev/fake{index}", 240, 10 + index // 2)
    owner = lab.executor()
    refused = allocate(lab, owner, 1, backend="simulated:3,nodes=/dev/fake%d")
    check_refused(refused, "240:10", "belongs to several GPUs")
    untouched(lab, owner)


@any_view
def test_two_nodes_with_one_device_number(lab: Lab) -> None:
    lab.mknod(CARDS[1].node, 195, CARDS[0].minor)
    check_refused(allocate(lab, lab.executor(), 1), f"(device 195:{CARDS[0].minor}) belongs to several GPUs")
    assert confinements(lab) == []


@any_view
def test_simulated_gpus_without_nodes(lab: Lab) -> None:
    owner = lab.executor()
    check_refused(allocate(lab, owner, 1, backend="simulated:3"), "no device node")
    untouched(lab, owner)


@any_view
def test_coordination_where_an_isolated_owner_lives(lab: Lab) -> None:
    isolated, other = confined(lab, 1), lab.executor()
    words = (SCRIPT, "1", "--coordinate", "--backend", "nvml", "--owner-pid", str(other.pid))
    check_refused(lab.run(*words), f"pid {isolated.pid}", "with isolation", codes=(64,))
    assert "no GPU is held" in lab.run(SCRIPT, "status", "--backend", "nvml").out
    isolated.kill()
    assert lab.run(*words).code == 0


@any_view
def test_isolation_where_a_coordinated_owner_lives(lab: Lab) -> None:
    lab.path("/run/flink-gpu-discovery").mkdir(mode=0o755)
    coordinated, owner = lab.executor(), lab.executor()
    words = (SCRIPT, "1", "--coordinate", "--backend", "nvml", "--owner-pid", str(coordinated.pid))
    assert lab.run(*words).code == 0
    check_refused(allocate(lab, owner, 1), f"pid {coordinated.pid}", "without isolation", codes=(64,))
    untouched(lab, owner)
    coordinated.kill()
    assert allocate(lab, owner, 1).code == 0


@any_view
def test_a_folder_that_coordination_has_made_for_others(lab: Lab) -> None:
    coordinated, owner = lab.executor(), lab.executor()
    assert lab.run(SCRIPT, "1", "--coordinate", "--backend", "nvml", "--owner-pid", str(coordinated.pid)).code == 0
    folder = lab.path("/run/flink-gpu-discovery")
    check_refused(allocate(lab, owner, 1), "chmod 0755 /run/flink-gpu-discovery", codes=(77,))
    folder.chmod(0o755)
    check_refused(allocate(lab, owner, 1), f"pid {coordinated.pid}", codes=(64,))
    untouched(lab, owner)


@any_view
@pytest.mark.parametrize(
    ("setting", "word"),
    [("max-gpus-per-owner = 2", "max-gpus-per-owner"), ("max-gpus-per-uid = 3", "max-gpus-per-uid")],
)
def test_limits_of_the_settings(lab: Lab, setting: str, word: str) -> None:
    lab.settings(f"{SETTINGS}{setting}\n")
    owner, second = confined(lab, 2), lab.executor()
    asker, options = (owner, ("--resource", "fpga")) if "owner" in word else (second, ())
    check_refused(allocate(lab, asker, 1 if "owner" in word else 2, *options), word, codes=(77,))
    assert (opens(owner), opens(second), held(lab)) == ({0, 1}, {0, 1, 2, 3}, {owner.pid: "0,1"})
    assert allocate(lab, lab.executor(OTHER), 2).code == 0


@any_view
def test_a_resource_that_the_settings_don_t_name(lab: Lab) -> None:
    lab.settings(f"{SETTINGS}resources = gpu, fpga\nbackend = nvml\n")
    owner = lab.executor(FLINK)
    check_refused(allocate(lab, owner, 1, "--resource", "tpu"), "'tpu'", "resources", codes=(77,))
    check_refused(owner.call(SCRIPT, "1", "--isolate", "--resource", "tpu"), "'tpu'", "resources", codes=(77,))
    untouched(lab, owner)
    assert owner.call(SCRIPT, "1", "--isolate", "--resource", "fpga").code == 0
