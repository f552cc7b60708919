"""The lab itself: what it shows, what it denies, and that nothing of it reaches anybody else or stays behind."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.isolation.agent import AgentError
from tests.isolation.cards import Card
from tests.isolation.hierarchies import WITH_V1, WITH_V2, Hierarchies, View, mounted, of_this_machine
from tests.isolation.lab import FLINK, OTHER, Lab

TWO_CARDS = (Card(0, drm=("card1", "renderD128")), Card(1, minor=3, drm=("card2", "renderD129")))


def test_shows_the_hierarchies_of_its_view(lab: Lab) -> None:
    machine = of_this_machine()
    expected = {
        "hybrid": machine,
        "v1": Hierarchies(machine.v1, None),
        "v2": Hierarchies(None, Path("/sys/fs/cgroup")),
    }
    assert mounted(lab.mountinfo()) == expected[lab.view]
    assert lab.executor().evaluate("open('/proc/self/mountinfo').read()") == lab.mountinfo()


def test_has_an_executor_in_a_leaf_of_each_hierarchy(lab: Lab) -> None:
    executor = lab.executor()
    assert executor.cgroup is not None
    for folder in executor.cgroup.folders:
        assert (folder / "cgroup.procs").read_text(encoding="ascii").split() == [str(executor.pid)]
    assert executor.evaluate("[os.getpid(), os.getuid(), os.getgid(), os.getgroups(), os.getcwd()]") == [
        executor.pid,
        FLINK,
        FLINK,
        [],
        "/",
    ]


def test_opens_reach_the_missing_driver(lab: Lab) -> None:
    lab.nvidia(*TWO_CARDS)
    executor = lab.executor()
    nodes = (
        "/dev/nvidia0",
        "/dev/nvidia3",
        "/dev/nvidiactl",
        "/dev/nvidia-uvm",
        "/dev/dri/card1",
        "/dev/dri/renderD129",
    )
    assert {node: executor.try_open(node) for node in nodes} == dict.fromkeys(nodes, "ENXIO")
    assert executor.try_open("/dev/nvidia1") == "ENOENT"
    assert executor.try_open("/dev/null") == executor.child().try_open("/dev/zero") == "opened"


@pytest.mark.parametrize("view", WITH_V1, indirect=True)
def test_a_denied_device_is_refused_to_each_thread_and_descendant(lab: Lab) -> None:
    lab.nvidia(*TWO_CARDS)
    executor = lab.executor()
    child = executor.child()
    grandchild = child.child()
    assert executor.cgroup is not None
    executor.cgroup.limit_v1("c 195:0 rwm")
    for agent in (executor, child, grandchild):
        assert (agent.try_open("/dev/nvidia0"), agent.try_open("/dev/nvidia3")) == ("EPERM", "ENXIO")
    assert executor.thread_try_open("/dev/nvidia0") == "EPERM"
    executor.kill()
    assert grandchild.try_open("/dev/nvidia0") == "EPERM"


@pytest.mark.parametrize("view", WITH_V1, indirect=True)
def test_an_allow_list_takes_no_exceptions(lab: Lab) -> None:
    lab.nvidia(*TWO_CARDS)
    parent = lab.cgroup("unit")
    parent.allow_list_v1(["c *:* rwm"])
    executor = lab.executor(cgroup=parent.child("leaf"))
    assert executor.cgroup is not None
    executor.cgroup.limit_v1("c 195:0 rwm")
    assert executor.cgroup.devices_v1() == ["c *:* rwm"]
    assert executor.try_open("/dev/nvidia0") == "ENXIO"


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_delegated_cgroup_is_its_users_to_leave(lab: Lab) -> None:
    unit = lab.cgroup("unit")
    executor = lab.executor(cgroup=unit.child("leaf"))
    assert executor.write(f"{unit.inside_v2}/cgroup.procs", str(executor.pid)) == "EACCES"
    unit.chown(FLINK)
    assert executor.write(f"{unit.inside_v2}/cgroup.procs", str(executor.pid)) == "ok"
    assert executor.membership()[""].endswith(f"/{unit.name}")


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_cgroup_of_threads_says_so(lab: Lab) -> None:
    threads = lab.cgroup("domain/threads")
    threads.make_threaded()
    assert threads.v2 is not None
    assert (threads.v2 / "cgroup.type").read_text(encoding="ascii") == "threaded\n"


def test_read_only_cgroups_can_not_be_written_inside(view: View, new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(view, read_only_cgroups=True)
    executor = lab.executor(uid=0)
    assert executor.cgroup is not None
    inside = executor.cgroup.inside_v2 if executor.cgroup.v2 else executor.cgroup.inside_v1
    assert executor.write(f"{inside}/cgroup.procs", "0") == "EROFS"


def test_sudo_lets_the_lab_s_users_run_one_script_as_root(lab: Lab) -> None:
    probe = lab.path("/usr/local/libexec/probe")
    probe.write_text('#!/bin/sh\nid -u\necho "$SUDO_UID"\n', encoding="ascii")
    probe.chmod(0o755)
    lab.sudoers("flink ALL=(root) NOPASSWD: NOSETENV: /usr/local/libexec/probe\n", name="probe")
    for done in (
        lab.executor().call("sudo", "-n", "/usr/local/libexec/probe"),
        lab.run("sudo", "-n", "/usr/local/libexec/probe", uid=FLINK),
    ):
        assert (done.code, done.out, done.err) == (0, f"0\n{FLINK}\n", "")
    assert lab.run("sudo", "-n", "/usr/local/libexec/probe", uid=OTHER).code == 1
    assert lab.run("sudo", "-n", "/bin/true", uid=FLINK).code == 1


def test_dropped_capabilities_stay_dropped_through_sudo(lab: Lab) -> None:
    lab.sudoers("flink ALL=(root) NOPASSWD: /usr/bin/grep\n", name="probe")
    told = ("grep", "CapPrm", "/proc/self/status")
    whole = int(lab.run(*told).out.split()[1], 16)
    system_administration = 1 << 21
    assert whole & system_administration
    for done in (
        lab.run(*told, capabilities={"sys_admin"}),
        lab.run("sudo", "-n", *told, uid=FLINK, capabilities={"sys_admin"}),
    ):
        assert int(done.out.split()[1], 16) == whole & ~system_administration


def test_commands_get_exactly_the_environment_and_folder_asked_for(lab: Lab) -> None:
    done = lab.run("sh", "-c", "pwd; /usr/bin/env", env={"A": "b c"}, cwd="/usr/bin", uid=OTHER)
    assert done.out.splitlines()[0] == "/usr/bin"
    assert {line for line in done.out.splitlines()[1:] if not line.startswith(("PWD=", "_="))} == {
        "A=b c",
        "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
    }


def test_agents_do_what_they_are_told_and_tell_what_went_wrong(lab: Lab) -> None:
    executor = lab.executor()
    executor.evaluate("kept = 1")
    assert executor.evaluate("result = kept + 1") == 2
    with pytest.raises(AgentError, match="ZeroDivisionError"):
        executor.evaluate("1 / 0")
    call = executor.start("sh", "-c", "echo $PPID; exit 3")
    assert executor.try_open("/dev/null") == "opened"
    assert call.finish().out == f"{executor.pid}\n"
    executor.end_main_thread()
    assert executor.try_open("/dev/null") == "opened"
    assert Path(f"/proc/{executor.pid}/stat").read_text(encoding="ascii").rpartition(") ")[2][0] == "Z"


def test_a_killed_child_is_gone(lab: Lab) -> None:
    child = lab.executor().child()
    child.kill()
    assert not Path(f"/proc/{child.pid}").exists()
    with pytest.raises(AgentError):
        child.try_open("/dev/null")


def test_the_host_s_own_folders_are_out_of_reach(lab: Lab) -> None:
    for folder in ("/etc", "/opt", "/usr/local", "/usr/local/lib", "/run", "/dev", "/sys/class", "/proc/driver"):
        lab.path(f"{folder}/{lab.name}").mkdir()
        assert not Path(f"{folder}/{lab.name}").exists()
    assert not lab.path("/run/flink-gpu-discovery").exists()


def test_nothing_is_left(view: View, new_lab: Callable[..., Lab], tmp_path: Path) -> None:
    before = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    with Lab(tmp_path / "short", view) as lab:
        executor = lab.executor(cgroup=lab.cgroup("a/b"))
        grandchild = executor.child().child()
        escaped = lab.executor(uid=0)
        for folder in escaped.cgroup.folders if escaped.cgroup else ():
            (folder.parents[1] / "cgroup.procs").write_text(str(escaped.pid), encoding="ascii")
        lab.start("setsid", "sh", "-c", "trap '' TERM; sleep 1000 & wait")
        folders = lab.cgroup("a").folders
        pids = lab.pids()
        assert {executor.pid, grandchild.pid, escaped.pid} < pids
    assert not any(folder.parent.exists() for folder in folders)
    assert not any(_lives(pid) for pid in pids)
    assert Path("/proc/self/mountinfo").read_text(encoding="utf-8") == before
    assert list((tmp_path / "short").iterdir()) == []


def test_a_foreign_process_in_a_cgroup_of_the_lab_ends_with_it(view: View, tmp_path: Path) -> None:
    with Lab(tmp_path / "short", view) as lab, subprocess.Popen(["sleep", "1000"]) as foreign:
        lab.cgroup("a").join(foreign.pid)
        lab.close()
        assert foreign.wait(timeout=5) == -9


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] != "Z"
    except OSError:
        return False
