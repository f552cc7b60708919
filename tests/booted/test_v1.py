"""Where systemd runs on cgroup v1 alone, a unit with a list of devices is confined within it, and stays so."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.booted.host import BootedHost
from tests.booted.installation import NODES
from tests.booted.taskmanager import TaskManager, TaskManagers, check_in_force, confinements, records

pytestmark = [
    pytest.mark.booted,
    pytest.mark.timeout(60, func_only=True),
    pytest.mark.parametrize("installed", ["v1"], indirect=True),
]

HELD = {0, 1}
LIST = ("DevicePolicy=closed", *(f"DeviceAllow={node} rw" for node in NODES))


@pytest.fixture
def confined(managers: TaskManagers) -> TaskManager:
    """A TaskManager whose unit says which devices there are, and lets systemd make it a cgroup for that."""
    manager = managers.start("taskmanager.service", *LIST)
    asked = manager.ask()
    assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
    return manager


@pytest.mark.parametrize("verb", ["daemon-reload", "daemon-reexec"])
def test_a_confinement_outlasts_the_manager_reading_its_units_again(confined: TaskManager, verb: str) -> None:
    check_in_force(confined, HELD)
    confined.host.succeed("systemctl", verb)
    check_in_force(confined, HELD)


@pytest.mark.parametrize("setting", ["MemoryMax=4G", "CPUWeight=50", "DeviceAllow=/dev/null rw"])
def test_a_confinement_outlasts_properties_set_on_the_unit(confined: TaskManager, setting: str) -> None:
    confined.host.succeed("systemctl", "set-property", "--runtime", confined.unit, setting)
    check_in_force(confined, HELD)
    confined.host.succeed("systemctl", "daemon-reload")
    check_in_force(confined, HELD)


def test_a_neighbour_that_gets_or_loses_a_list_moves_nobody(confined: TaskManager, managers: TaskManagers) -> None:
    neighbour = managers.start("neighbour.service", *LIST, user="other")
    check_in_force(confined, HELD)
    confined.host.succeed("systemctl", "stop", neighbour.unit)
    confined.host.succeed("systemctl", "daemon-reload")
    check_in_force(confined, HELD)


def test_stopping_the_unit_frees_its_gpus_and_removes_the_cgroup(confined: TaskManager, host: BootedHost) -> None:
    assert len(confinements(host)) == 1
    host.succeed("systemctl", "stop", confined.unit)
    assert (records(host), confinements(host)) == ([], [])


def test_without_the_bus_policy_a_call_is_refused(managers: TaskManagers, open_bus: Callable[[], None]) -> None:
    open_bus()
    asked = managers.start("taskmanager.service", *LIST).ask()
    assert (asked.code, asked.out) == (71, "")
    assert "AttachProcessesToUnit" in asked.err
