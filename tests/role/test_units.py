"""Units of TaskManagers: what their drop-ins do when systemd starts them, when they end, and while they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.booted.host import BootedHost
from tests.booted.taskmanager import TaskManager, TaskManagers, check_in_force, confinements, records
from tests.isolation.installation import SCRIPT
from tests.role.fleet import GROUP, ISOLATED, NODES, prepare_gpus
from tests.role.hosts import HostKind
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

V1 = HostKind("bookworm", "v1")
PLAIN, SANDBOXED, EARLY, LATE = "plain.service", "sandboxed.service", "early.service", "late.service"
TEMPLATE, INSTANCES = "pool@.service", ("pool@one.service", "pool@two.service")
ONE_INSTANCE, SIBLING = "solo@one.service", "solo@two.service"
UNITS = [PLAIN, SANDBOXED, EARLY, LATE, TEMPLATE, ONE_INSTANCE]
PROPERTIES = "ExecStartPre,ExecStopPost,Environment,Delegate,DropInPaths,ReadWritePaths"
OUTDATED = "runs with an older drop-in, or older settings of Flink, until it is restarted"


class Site(NamedTuple):
    """A host that was played, what starts TaskManagers there, and how the play ended."""

    host: BootedHost
    managers: TaskManagers
    outcome: Outcome


def play(control: ControlNode, host: BootedHost, **variables: object) -> Outcome:
    return control.play("flinkops.gpu.site", [host], variables={**ISOLATED, **variables}, group=GROUP).must_succeed()


def shown(host: BootedHost, unit: str) -> dict[str, str]:
    """What systemd makes of a unit."""
    told = host.succeed("systemctl", "show", f"--property={PROPERTIES}", unit)
    return dict(line.split("=", 1) for line in told.splitlines())


def main_pid(manager: TaskManager) -> int:
    return int(manager.host.succeed("systemctl", "show", "-P", "MainPID", manager.unit))


def stop(manager: TaskManager) -> None:
    manager.host.succeed("systemctl", "stop", manager.unit)
    manager.hang_up()


@pytest.fixture(scope="class")
def managers(host: BootedHost) -> Iterator[TaskManagers]:
    """Units as an operator has them before the role comes: their user exists, and one of them runs."""
    prepare_gpus(host)
    host.succeed("useradd", "--create-home", "flink")
    managers = TaskManagers(host, plain=True)
    for unit in (PLAIN, TEMPLATE, "solo@.service"):
        managers.write(unit)
    managers.write(SANDBOXED, "ProtectSystem=strict")
    managers.start(EARLY)
    yield managers
    managers.close()


@pytest.fixture(scope="class")
def site(control: ControlNode, host: BootedHost, managers: TaskManagers) -> Site:
    """All of them in the role's list, and one that isn't there yet."""
    return Site(host, managers, play(control, host, flink_gpu_taskmanager_units=UNITS))


class TestDropIns:
    """On cgroup v2; the tests are in the order of a host's life."""

    @pytest.mark.parametrize("unit", [PLAIN, SANDBOXED, EARLY, *INSTANCES, ONE_INSTANCE])
    def test_each_unit_is_checked_before_its_start_and_cleaned_up_after_its_end(self, site: Site, unit: str) -> None:
        properties = shown(site.host, unit)
        assert f"argv[]={SCRIPT} doctor --quick ;" in properties["ExecStartPre"]
        assert f"argv[]={SCRIPT} reclaim ;" in properties["ExecStopPost"]
        assert (properties["Environment"], properties["Delegate"]) == ("CUDA_DEVICE_ORDER=PCI_BUS_ID", "no")

    def test_an_instance_that_is_not_in_the_list_gets_no_drop_in(self, site: Site) -> None:
        assert shown(site.host, SIBLING)["DropInPaths"] == ""

    def test_only_a_sandboxed_unit_gets_the_ledger_opened(self, site: Site) -> None:
        assert shown(site.host, SANDBOXED)["ReadWritePaths"] == "-/run/flink-gpu-discovery"
        assert shown(site.host, PLAIN)["ReadWritePaths"] == ""

    def test_a_unit_that_is_not_there_yet_is_reported_and_gets_its_drop_in_all_the_same(self, site: Site) -> None:
        assert f"{LATE}: systemd knows no such unit yet" in site.outcome.stdout
        site.managers.write(LATE)
        assert "doctor" in shown(site.host, LATE)["ExecStartPre"]

    def test_nothing_is_mounted_where_systemd_has_mounted_cgroup_v2(self, site: Site) -> None:
        mounts = site.host.succeed("cat", "/proc/self/mounts").splitlines()
        assert [line.split()[1] for line in mounts if line.split()[2].startswith("cgroup")] == ["/sys/fs/cgroup"]

    def test_one_that_ran_before_is_reported_until_it_is_restarted(self, site: Site) -> None:
        assert f"{EARLY}: {OUTDATED}" in site.outcome.stdout
        assert site.outcome.stdout.count(OUTDATED) == 1

    @pytest.mark.parametrize("unit", [PLAIN, SANDBOXED])
    def test_a_killed_taskmanager_gives_its_gpus_back(self, site: Site, unit: str) -> None:
        manager = site.managers.restart(unit)
        asked = manager.ask()
        assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
        check_in_force(manager, {0, 1})
        manager.kill()
        site.host.succeed("sh", "-c", f"while systemctl is-active -q {unit}; do sleep 0.02; done")
        site.host.run("systemctl", "stop", unit)  # waits for ExecStopPost=
        assert (records(site.host), confinements(site.host)) == ([], [])

    def test_instances_of_a_template_get_gpus_of_their_own(self, site: Site) -> None:
        started = [site.managers.restart(unit) for unit in INSTANCES]
        # What each is told are numbers among the GPUs that it may open.
        assert [manager.ask().out for manager in started] == ["0,1\n", "0,1\n"]
        assert [manager.opens() for manager in started] == [{0, 1}, {2, 3}]
        stop(started[0])
        assert {record["owner"]["pid"] for record in records(site.host)} == {started[1].inner_pid}
        stop(started[1])

    def test_a_unit_does_not_start_while_a_device_node_is_missing(self, site: Site) -> None:
        site.host.succeed("rm", NODES[2])
        assert site.host.run("systemctl", "start", PLAIN).code != 0
        status = site.host.run("journalctl", "--no-pager", "--unit", PLAIN).out
        prepare_gpus(site.host)
        assert "nodes: " in status
        assert NODES[2] in status
        stop(site.managers.restart(PLAIN))

    def test_a_unit_that_left_the_list_loses_its_drop_in_and_others_run_on(
        self, site: Site, control: ControlNode
    ) -> None:
        managers = [site.managers.restart(unit) for unit in (PLAIN, EARLY, SANDBOXED)]
        assert managers[0].ask().out == "0,1\n"
        again = play(control, site.host, flink_gpu_taskmanager_units=[PLAIN, EARLY], flink_gpu_wait=1)
        assert OUTDATED not in again.stdout
        properties = shown(site.host, SANDBOXED)
        assert (properties["DropInPaths"], properties["Environment"], "ExecStartPre" in properties) == ("", "", False)
        assert "doctor" in shown(site.host, PLAIN)["ExecStartPre"]
        assert [main_pid(manager) for manager in managers] == [manager.inner_pid for manager in managers]
        check_in_force(managers[0], {0, 1})
        assert managers[0].ask().out == "0,1\n"


@pytest.mark.parametrize("host", [V1], indirect=True, ids=str)
class TestOnCgroupV1:
    """Where a confinement needs a list of devices on the unit."""

    def test_the_drop_in_brings_the_list_in_which_a_taskmanager_is_confined(
        self, control: ControlNode, host: BootedHost, managers: TaskManagers
    ) -> None:
        allowed = [f"{node} rw" for node in (*NODES, "/dev/nvidiactl")]
        play(control, host, flink_gpu_taskmanager_units=[PLAIN], flink_gpu_device_allow=allowed)
        told = host.succeed("systemctl", "show", "--property=DevicePolicy,DeviceAllow", PLAIN).splitlines()
        assert set(told) == {"DevicePolicy=closed", *(f"DeviceAllow={device}" for device in allowed)}
        manager = managers.restart(PLAIN)
        asked = manager.ask()
        assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
        check_in_force(manager, {0, 1})
        host.succeed("systemctl", "daemon-reload")
        check_in_force(manager, {0, 1})
        manager.kill()
        host.run("systemctl", "stop", PLAIN)
        assert (records(host), confinements(host)) == ([], [])
