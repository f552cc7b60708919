"""A confinement outlasts what systemd does to the unit, and ends with it; delegated units are refused."""

from __future__ import annotations

import pytest

from tests.booted.host import BootedHost
from tests.booted.installation import NODES
from tests.booted.taskmanager import TaskManager, TaskManagers, check_in_force, confinements, records

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

UNIT = "taskmanager.service"
V2 = {"v2": "/sys/fs/cgroup", "hybrid": "/sys/fs/cgroup/unified"}
HELD = {0, 1}
LIST = [f"DeviceAllow={node} rw" for node in NODES]
DROP_IN = "[Service]\nDevicePolicy=closed\n" + "".join(f"{line}\n" for line in LIST)


def test_a_unit_that_asks_through_sudo_is_confined(confined: TaskManager) -> None:
    check_in_force(confined, HELD)
    child = confined.shell("cat /proc/self/cgroup; echo >/dev/nvidia0; echo >/dev/nvidia3")
    assert confined.cgroup_now() in child.out
    assert "/dev/nvidia0: No such device or address" in child.err
    assert "/dev/nvidia3: Operation not permitted" in child.err


@pytest.mark.parametrize("verb", ["daemon-reload", "daemon-reexec"])
def test_a_confinement_outlasts_the_manager_reading_its_units_again(confined: TaskManager, verb: str) -> None:
    confined.host.succeed("systemctl", verb)
    check_in_force(confined, HELD)


@pytest.mark.parametrize(
    "settings", [["MemoryMax=4G"], ["CPUWeight=50"], LIST, ["DevicePolicy=closed", *LIST]], ids=lambda value: value[0]
)
def test_a_confinement_outlasts_properties_set_on_the_unit(confined: TaskManager, settings: list[str]) -> None:
    confined.host.succeed("systemctl", "set-property", "--runtime", UNIT, *settings)
    check_in_force(confined, HELD)
    confined.host.succeed("systemctl", "daemon-reload")
    check_in_force(confined, HELD)


def test_a_confinement_outlasts_a_drop_in_that_allows_all_gpus(confined: TaskManager) -> None:
    confined.host.unit(f"{UNIT}.d/gpus.conf", DROP_IN)
    check_in_force(confined, HELD)
    confined.host.succeed("systemctl", "daemon-reexec")
    check_in_force(confined, HELD)


def test_a_unit_with_a_list_of_devices_is_confined_within_it(managers: TaskManagers) -> None:
    manager = managers.start(UNIT, "DevicePolicy=closed", *LIST)
    assert manager.ask().out == "0,1\n"
    check_in_force(manager, HELD)
    manager.host.succeed("systemctl", "daemon-reload")
    check_in_force(manager, HELD)


def test_a_second_call_renews_the_confinement(confined: TaskManager) -> None:
    before = confined.cgroup_now()
    confined.host.succeed("systemctl", "daemon-reload")
    asked = confined.ask()
    assert (asked.code, asked.out) == (0, "0,1\n")
    assert confined.cgroup_now() == before
    check_in_force(confined, HELD)


def test_stopping_the_unit_frees_its_gpus_and_removes_the_cgroup(confined: TaskManager, host: BootedHost) -> None:
    assert len(confinements(host)) == 1
    host.succeed("systemctl", "stop", UNIT)
    assert records(host) == []
    assert confinements(host) == []


def test_a_restarted_unit_gets_gpus_and_a_cgroup_of_its_own(
    confined: TaskManager, managers: TaskManagers, host: BootedHost
) -> None:
    before = confinements(host)
    successor = managers.restart(UNIT)
    assert (records(host), confinements(host)) == ([], [])
    assert successor.opens() == {0, 1, 2, 3}
    assert successor.ask().out == "0,1\n"
    check_in_force(successor, HELD)
    assert confinements(host) != before


def test_a_killed_unit_leaves_nothing_behind(confined: TaskManager, host: BootedHost) -> None:
    confined.kill()
    host.succeed("sh", "-c", f"while systemctl is-active --quiet {UNIT}; do sleep 0.1; done")
    host.succeed("systemctl", "stop", UNIT)
    assert records(host) == []
    assert confinements(host) == []


def test_two_units_of_one_user_hold_disjoint_gpus(confined: TaskManager, managers: TaskManagers) -> None:
    second = managers.start("taskmanager-2.service")
    assert second.ask().code == 0
    assert (confined.opens(), second.opens()) == (HELD, {2, 3})


@pytest.mark.parametrize("delegate", ["yes", "devices"])
def test_a_delegated_unit_is_refused_with_its_folder(managers: TaskManagers, host: BootedHost, delegate: str) -> None:
    manager = managers.start(UNIT, f"Delegate={delegate}")
    asked = manager.ask()
    assert (asked.code, asked.out) == (71, "")
    assert f"/system.slice/{UNIT}/" in asked.err
    assert "Delegate=" in asked.err
    assert (records(host), confinements(host)) == ([], [])
    assert manager.opens() == {0, 1, 2, 3}


def test_a_unit_below_a_delegated_one_is_refused_with_the_folder_above(
    managers: TaskManagers, host: BootedHost
) -> None:
    manager = managers.start(UNIT, "Delegate=yes")
    below = f"{V2[host.layout]}/system.slice/{UNIT}/below"
    host.succeed("sh", "-c", f"mkdir {below} && echo {manager.inner_pid} >{below}/cgroup.procs")
    asked = manager.ask()
    assert (asked.code, asked.out) == (71, "")
    assert f"/system.slice/{UNIT}/cgroup.procs" in asked.err


def test_a_delegated_unit_of_the_same_user_beside_it_takes_it_in_by_no_way(
    managers: TaskManagers, host: BootedHost
) -> None:
    neighbour = managers.start("batch.service", "Delegate=yes")
    manager = managers.start()
    assert manager.ask().code == 0
    doors = f"{V2[host.layout]}/system.slice/batch.service/cgroup.procs"
    told = [process.write(doors, str(manager.inner_pid)) for process in (manager, neighbour)]
    assert told == ["EACCES", "EACCES"]
    call = "busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager"
    for process in (manager, neighbour):
        asked = process.shell(f"{call} AttachProcessesToUnit ssau batch.service '' 1 {manager.inner_pid}")
        assert "Access denied" in asked.err
    check_in_force(manager, HELD)


def test_a_delegated_unit_of_another_user_is_no_reason_to_refuse(managers: TaskManagers) -> None:
    managers.start("batch.service", "Delegate=yes", user="other")
    manager = managers.start()
    assert manager.ask().out == "0,1\n"
    check_in_force(manager, HELD)
