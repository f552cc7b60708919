"""A confined process can't have systemd take it out of its cgroup, neither the system's nor one of its own user."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.booted.host import BootedHost
from tests.booted.taskmanager import TaskManager, TaskManagers, confinements, records
from tests.isolation.installation import SCRIPT

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

UID = 7001
HELD = {0, 1}
USER_MANAGER = f"user@{UID}.service"
FOLDER = f"/user.slice/user-{UID}.slice/{USER_MANAGER}"
NAMES = "/sys/fs/cgroup/systemd/"  # systemd's own tree on hybrid hosts, which has no controllers

LINGER = (
    "loginctl --no-ask-password enable-linger flink && "
    "for i in $(seq 100); do [ -S $XDG_RUNTIME_DIR/bus ] && exec true; sleep 0.1; done; exit 1"
)
CALL = "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1"
MANAGER = "org.freedesktop.systemd1.Manager"
OPEN = "python3 -c 'import os; os.open(\"/dev/nvidia3\", os.O_RDWR)'"

# What each of them says when it fails, for lack of a right.
ATTEMPTS = {
    "the-system-manager-attaching": (
        f"{CALL} {MANAGER} AttachProcessesToUnit ssau {USER_MANAGER} '' 1 $ME",
        "Access denied",
    ),
    "attaching-to-a-cgroup-below": (
        f"{CALL} {MANAGER} AttachProcessesToUnit ssau {USER_MANAGER} /init.scope 1 $ME",
        "Access denied",
    ),
    "the-unit-object-attaching": (
        f"{CALL}/unit/user_40{UID}_2eservice org.freedesktop.systemd1.Service AttachProcesses sau '' 1 $ME",
        "Access denied",
    ),
    "a-scope-object-attaching": (
        f"{CALL}/unit/init_2escope org.freedesktop.systemd1.Scope AttachProcesses sau '' 1 $ME",
        "Access denied",
    ),
    "a-scope-of-the-system": (
        f"{CALL} {MANAGER} StartTransientUnit 'ssa(sv)a(sa(sv))' out.scope fail 1 PIDs au 1 $ME 0",
        "authentication required",
    ),
    "a-unit-of-the-system": (f"systemd-run --no-ask-password --uid={UID} sleep 60", "authentication required"),
    "another-unit-of-the-system": (f"systemctl --no-ask-password start {USER_MANAGER}", "authentication required"),
    "a-scope-by-systemd-run": (f"systemd-run --user --scope {OPEN}", "Job failed"),
}


@pytest.fixture
def host(host: BootedHost) -> Iterator[BootedHost]:
    """The host, on which no user manager of flink's is left behind."""
    yield host
    host.succeed("sh", "-c", f"loginctl disable-linger flink; systemctl stop {USER_MANAGER} user-runtime-dir@{UID}")


def user_manager(manager: TaskManager) -> None:
    """The TaskManager brings its own user manager about, which nothing forbids it."""
    done = manager.shell(LINGER)
    assert done.code == 0, done.err
    manager.host.succeed("sh", "-c", f"until systemctl is-active --quiet {USER_MANAGER}; do sleep 0.1; done")


def still_confined(manager: TaskManager, cgroup: str) -> None:
    assert manager.cgroup_now() == cgroup
    assert manager.opens() == HELD


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_user_manager_of_its_own_lets_nobody_out(host: BootedHost, confined: TaskManager, attempt: str) -> None:
    script, refusal = ATTEMPTS[attempt]
    cgroup = confined.cgroup_now()
    user_manager(confined)
    done = confined.shell(script)
    assert done.code != 0, done.out
    assert refusal in done.err
    still_confined(confined, cgroup)


def test_a_scope_of_the_user_manager_is_made_without_the_process(host: BootedHost, confined: TaskManager) -> None:
    cgroup = confined.cgroup_now()
    user_manager(confined)
    call = CALL.replace("call", "call --user")
    done = confined.shell(f"{call} {MANAGER} StartTransientUnit 'ssa(sv)a(sa(sv))' out.scope fail 1 PIDs au 1 $ME 0")
    assert done.code == 0, done.err  # the job is taken on, and fails
    confined.shell("for i in $(seq 50); do systemctl --user is-failed out.scope && exit; sleep 0.1; done")
    still_confined(confined, cgroup)
    done = confined.shell(f"{call} {MANAGER} AttachProcessesToUnit ssau out.scope '' 1 $ME")
    assert done.code != 0
    still_confined(confined, cgroup)


def test_the_cgroups_of_its_user_manager_take_nobody_in(host: BootedHost, confined: TaskManager) -> None:
    cgroup = confined.cgroup_now()
    user_manager(confined)
    owned = host.succeed("find", "/sys/fs/cgroup", "-name", "cgroup.procs", "-user", "flink").split()
    doors = [door for door in owned if not door.startswith(NAMES)]
    assert any(FOLDER in door for door in doors)
    assert {confined.write(door, str(confined.inner_pid)) for door in doors} == {"EACCES"}
    still_confined(confined, cgroup)


def test_a_child_is_not_moved_either(host: BootedHost, confined: TaskManager) -> None:
    cgroup = confined.cgroup_now()
    user_manager(confined)
    call = f"{CALL} {MANAGER} AttachProcessesToUnit ssau {USER_MANAGER} '' 1 $child"
    done = confined.shell(f"sleep 30 & child=$!; {call}; cat /proc/$child/cgroup; kill $child")
    assert "Access denied" in done.err
    assert f"0::{cgroup}\n" in done.out


def test_without_the_bus_policy_a_confined_process_walks_out(
    host: BootedHost, confined: TaskManager, open_bus: Callable[[], None]
) -> None:
    """Which shows that the other attempts are made as they should be, and that ``status`` knows."""
    open_bus()
    (told,) = {record["confinement"] for record in records(host)}
    assert told.startswith("broken: ")
    user_manager(confined)
    done = confined.shell(f"{CALL} {MANAGER} AttachProcessesToUnit ssau {USER_MANAGER} '' 1 $ME")
    assert done.code == 0, done.err
    assert confined.cgroup_now() == FOLDER
    assert confined.opens() == {0, 1, 2, 3}
    (told,) = {record["confinement"] for record in records(host)}
    assert told.startswith("broken: ")


def test_a_task_manager_in_a_user_manager_is_refused_with_its_folder(host: BootedHost, managers: TaskManagers) -> None:
    manager = managers.start()
    user_manager(manager)
    asked = manager.shell(f"systemd-run --user --pipe --wait sh -c '{SCRIPT} 2 --isolate; exit $?'")
    assert (asked.code, asked.out) == (71, "")
    assert FOLDER in asked.err
    assert (records(host), confinements(host)) == ([], [])


def test_a_masked_user_manager_starts_nothing(host: BootedHost, confined: TaskManager) -> None:
    host.succeed("systemctl", "mask", "--runtime", USER_MANAGER)
    done = confined.shell(f"loginctl --no-ask-password enable-linger flink; systemd-run --user --pipe {OPEN}")
    host.succeed("systemctl", "unmask", "--runtime", USER_MANAGER)
    assert done.code != 0
    assert "Failed to connect to bus" in done.err
