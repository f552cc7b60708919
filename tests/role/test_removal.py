"""Removal: everything goes but what the operator had before, and nothing while GPUs are held."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.booted.host import BootedHost
from tests.booted.taskmanager import TaskManager, TaskManagers, check_in_force
from tests.isolation.installation import SCRIPT
from tests.role.fleet import GROUP, ISOLATED, differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

UNIT = "taskmanager.service"
SETTINGS, RUN = "/etc/flink-gpu-discovery.conf", "/run/flink-gpu-discovery"
VARIABLES = {**ISOLATED, "flink_gpu_taskmanager_units": [UNIT], "flink_gpu_extra_users": ["older"]}
OWN_THINGS = Path(__file__).with_name("own_things.sh").read_text(encoding="utf-8")


@dataclass
class Site:
    """A host with the operator's own things, as it was before the role came, and what starts TaskManagers there."""

    host: BootedHost
    control: ControlNode
    before: dict[str, str]
    managers: TaskManagers

    def remove(self, *, check: bool = False, kill_at: int = 0, **variables: object) -> Outcome:
        words = {**VARIABLES, **variables}
        return self.control.play(
            "flinkops.gpu.remove", [self.host], check=check, kill_at=kill_at, variables=words, group=GROUP
        )


@pytest.fixture(scope="class")
def site(control: ControlNode, host: BootedHost) -> Iterator[Site]:
    """The role is installed there."""
    prepare_gpus(host)
    host.succeed("sh", "-c", OWN_THINGS)
    managers = TaskManagers(host, plain=True)
    managers.write(UNIT)
    before = snapshot(host)
    control.play("flinkops.gpu.site", [host], variables=VARIABLES, group=GROUP).must_succeed()
    yield Site(host, control, before, managers)
    managers.close()


@pytest.fixture(scope="class")
def manager(site: Site) -> TaskManager:
    """Holds two GPUs."""
    manager = site.managers.restart(UNIT)
    assert manager.ask().out == "0,1\n"
    return manager


@pytest.fixture(scope="class")
def checked(site: Site, manager: TaskManager) -> Outcome:
    """What a forced removal says in check mode, and nothing has changed by it."""
    assert manager.host is site.host
    present = snapshot(site.host)
    outcome = site.remove(check=True, flink_gpu_force=True).must_succeed()
    assert differences(present, snapshot(site.host)) == {}
    return outcome


class TestRemoval:
    """In the order of a host's life."""

    def test_the_operators_things_have_made_way(self, site: Site) -> None:
        assert site.host.succeed("readlink", SCRIPT).startswith("/opt/flink-gpu-discovery/")
        assert "isolate = yes" in site.host.succeed("cat", SETTINGS)
        assert site.host.succeed("systemctl", "show", "-P", "Nice", UNIT) == "1\n"

    def test_it_is_refused_while_gpus_are_held_or_a_ledger_is_damaged(self, site: Site, manager: TaskManager) -> None:
        site.host.write(f"{RUN}/ledger", "garbage")
        present = snapshot(site.host)
        outcome = site.remove()
        (message,) = outcome.failures
        assert f"pid {manager.inner_pid} holds GPUs" in message
        assert f"{RUN}/ledger" in message
        assert "user flink, which was made by the role, has processes" in message
        assert "flink_gpu_force" in message
        assert (outcome.changed, differences(present, snapshot(site.host))) == ([], {})
        check_in_force(manager, {0, 1})
        site.host.succeed("rm", f"{RUN}/ledger")

    def test_check_mode_says_what_a_removal_does_and_one_that_was_killed_is_finished_by_the_next(
        self, site: Site, checked: Outcome
    ) -> None:
        names = [result.task for result in checked.results]
        killed = site.remove(kill_at=names.index("absent | Take away the releases") + 1, flink_gpu_force=True)
        assert killed.killed
        assert SETTINGS not in differences(site.before, snapshot(site.host))
        finished = site.remove(flink_gpu_force=True).must_succeed()
        assert killed.changed + finished.changed == checked.changed

    def test_everything_is_as_it_was_before(self, site: Site) -> None:
        assert differences(site.before, snapshot(site.host)) == {}
        assert [site.host.run("id", name).code for name in ("older", "flink")] == [0, 1]
        assert site.host.run("getent", "group", "flink").code == 0
        assert "doctor" not in site.host.succeed("systemctl", "cat", UNIT)

    def test_what_is_not_there_can_be_removed_without_a_change(self, site: Site) -> None:
        assert site.remove().must_succeed().changed == []


@pytest.mark.parametrize("lost", ["/opt/flink-gpu-discovery", "/opt/flink-gpu-discovery/record.json"])
def test_a_lost_record_leaves_nothing_on_the_host(control: ControlNode, host: BootedHost, lost: str) -> None:
    """Also in the folder of a unit that is no longer named: its drop-in calls what goes."""
    prepare_gpus(host)
    host.unit("kept.service", "[Service]\nExecStart=/bin/true\n")
    before = snapshot(host)
    variables = {**ISOLATED, "flink_gpu_taskmanager_units": ["kept.service"]}
    control.play("flinkops.gpu.site", [host], variables=variables, group=GROUP).must_succeed()
    host.succeed("rm", "-r", lost)
    for check in (True, False):
        outcome = control.play(
            "flinkops.gpu.remove", [host], check=check, variables=ISOLATED, group=GROUP
        ).must_succeed()
        said = outcome.named("absent | Tell what was done, or would be").msg
        assert f"take {SCRIPT} for an earlier installation's: no record names it" in said
        assert f"remove {SCRIPT}" in said
    left = differences(before, snapshot(host))
    assert {path for path in left if not path.startswith(("/etc/group", "/etc/gshadow"))} <= {
        "/etc/systemd/system/kept.service.d",  # empty folders say nothing of who made them
        "/usr/local/libexec",
    }
    assert "doctor" not in host.succeed("systemctl", "cat", "kept.service")
