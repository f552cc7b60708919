"""The playbooks on a fleet: a fault of one host is told, and doesn't keep another from being served."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.booted.host import BootedHost
from tests.role.fleet import GROUP, ISOLATED, differences, prepare_gpus, snapshot
from tests.role.hosts import BOOKWORM
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

SITE, VERIFY, REMOVE = (f"flinkops.gpu.{name}" for name in ("site", "verify", "remove"))
SETTINGS = "/etc/flink-gpu-discovery.conf"
SUDOERS = "/etc/sudoers.d/flink-gpu-discovery"
LEDGER = "/run/flink-gpu-discovery/root/ledger"
UNIT = "flink-taskmanager.service"
VARIABLES = {**ISOLATED, "flink_gpu_taskmanager_units": [UNIT]}

Snapshots = dict[str, dict[str, str]]


class Fleet:
    """Two hosts that are played at once, and what they were before."""

    def __init__(self, control: ControlNode, *hosts: BootedHost) -> None:
        self._control = control
        self.hosts = hosts
        for host in hosts:
            prepare_gpus(host)
        self.fresh = self.snapshots()

    def play(self, playbook: str, *, gone: tuple[BootedHost, ...] = (), **variables: object) -> Outcome:
        return self._control.play(playbook, [*self.hosts, *gone], variables={**VARIABLES, **variables}, group=GROUP)

    def snapshots(self) -> Snapshots:
        return {host.name: snapshot(host) for host in self.hosts}


@pytest.fixture(scope="class")
def other() -> Iterator[BootedHost]:
    """The host that has a fault at times; ``host`` never has one."""
    with BootedHost(BOOKWORM.layout, suite=BOOKWORM.suite) as booted:
        yield booted


@pytest.fixture(scope="class")
def fleet(control: ControlNode, host: BootedHost, other: BootedHost) -> Fleet:
    return Fleet(control, host, other)


@pytest.fixture(scope="class")
def half_installed(fleet: Fleet, other: BootedHost) -> tuple[Fleet, Outcome, Snapshots]:
    """What came of site where one host has a unit that can't be served, and how the hosts were before."""
    other.unit(UNIT, "[Service]\nUser=daemon\nExecStart=/bin/sleep 600\n")
    before = fleet.snapshots()
    outcome = fleet.play(SITE)
    return fleet, outcome, before


@pytest.fixture(scope="class")
def installed(half_installed: tuple[Fleet, Outcome, Snapshots], other: BootedHost) -> Fleet:
    """Both hosts are installed now."""
    other.succeed("sh", "-ec", f"rm /etc/systemd/system/{UNIT} && systemctl daemon-reload")
    fleet, _, _ = half_installed
    fleet.play(SITE).must_succeed()
    return fleet


def report(outcome: Outcome, host: BootedHost) -> dict[str, Any]:
    """What verify tells of a host."""
    told: dict[str, Any] = json.loads(outcome.of(host.name).named("Report on the host").msg)
    return told


def summary(outcome: Outcome) -> dict[str, Any]:
    """What verify tells of the fleet."""
    told: dict[str, Any] = json.loads(outcome.named("Report on the fleet").msg)
    return told


class TestFleet:
    """Two hosts on which one test builds upon the other."""

    def test_site_serves_the_other_hosts_where_one_is_refused(
        self, half_installed: tuple[Fleet, Outcome, Snapshots], host: BootedHost, other: BootedHost
    ) -> None:
        fleet, outcome, before = half_installed
        assert outcome.rc != 0
        assert outcome.failures == [
            f"{UNIT}: User=daemon is not among flink_gpu_user and flink_gpu_extra_users (flink)"
        ]
        assert fleet.snapshots()[other.name] == before[other.name]
        assert len(json.loads(host.succeed("flink-gpu-discovery", "inventory", "--json"))["gpus"]) == 4

    def test_site_restarts_no_two_hosts_at_once(self, installed: Fleet) -> None:
        outcome = installed.play(SITE, flink_gpu_restart_taskmanagers=True, flink_gpu_rest_url="http://127.0.0.1:9")
        assert [message.partition(";")[0] for message in outcome.failures] == [
            "flink_gpu_restart_taskmanagers with 2 hosts at once would restart TaskManagers on all of them"
        ] * 2
        assert outcome.changed == []

    def test_a_sound_fleet_is_told_to_be_so(self, installed: Fleet) -> None:
        before = installed.snapshots()

        outcome = installed.play(VERIFY)

        assert (outcome.rc, outcome.changed, outcome.failures) == (0, [], [])
        assert installed.snapshots() == before
        reports = [report(outcome, host) for host in installed.hosts]
        (version,) = {told.pop("version") for told in reports}
        sound = {"problems": [], "gpus": 4, "healthy": 4, "held": 0, "running": [], "outdated": [], "cgroup": "v2"}
        assert reports == [{**sound, "warnings": [f"{UNIT}: systemd knows no such unit yet"]}] * 2
        assert summary(outcome) == {
            "hosts": 2,
            "without_problems": 2,
            "with_problems": [],
            "without_an_answer": [],
            "gpus": 8,
            "healthy_gpus": 8,
            "held_gpus": 0,
            "versions": [version],
            "to_restart": 0,
        }

    @pytest.mark.parametrize(
        ("damage", "mend", "told"),
        [
            (
                f"echo nonsense >>{SETTINGS}",
                f"sed -i '$d' {SETTINGS}",
                f"as flink: exit code 78: flink-gpu-discovery: {SETTINGS}:10: unknown setting 'nonsense'",
            ),
            (
                f"sed -i /isolate/d {SETTINGS}",
                f"echo 'isolate = yes' >>{SETTINGS}",
                "the host's settings don't say 'isolate = yes', so TaskManagers are not confined",
            ),
            (
                f"mv {SUDOERS} /root",
                f"mv /root/flink-gpu-discovery {SUDOERS}",
                "as flink: exit code 1: sudo: a password is required",
            ),
        ],
        ids=["settings", "not-isolated", "sudoers"],
    )
    def test_the_faulty_host_is_named_with_its_fault(
        self, installed: Fleet, host: BootedHost, other: BootedHost, damage: str, mend: str, told: str
    ) -> None:
        other.succeed("sh", "-ec", damage)
        before = installed.snapshots()

        outcome = installed.play(VERIFY)

        assert installed.snapshots() == before
        other.succeed("sh", "-ec", mend)
        assert outcome.rc != 0
        assert [problem for problem in report(outcome, other)["problems"] if problem.startswith(told)]
        assert report(outcome, host)["problems"] == []
        assert (summary(outcome)["with_problems"], summary(outcome)["without_problems"]) == ([other.name], 1)
        assert outcome.failures == [f"{other.name}: see the reports above"]

    def test_hosts_that_do_not_answer_and_hosts_without_the_script_are_named(
        self, installed: Fleet, host: BootedHost, other: BootedHost
    ) -> None:
        other.succeed("mv", "/opt/flink-gpu-discovery/current", "/root")
        with BootedHost(BOOKWORM.layout, suite=BOOKWORM.suite) as gone:
            pass

        outcome = installed.play(VERIFY, gone=(gone,))

        other.succeed("mv", "/root/current", "/opt/flink-gpu-discovery/")
        assert outcome.rc != 0
        told = summary(outcome)
        assert (told["hosts"], told["without_problems"]) == (3, 1)
        assert (told["with_problems"], told["without_an_answer"]) == ([other.name], [gone.name])
        assert outcome.failures[-1] == f"{other.name}, {gone.name}: see the reports above"

    @pytest.mark.parametrize("expected", [5, 0])
    def test_one_host_of_the_fleet_may_be_asked_alone_and_must_have_as_many_gpus_as_expected(
        self, installed: Fleet, host: BootedHost, other: BootedHost, expected: int
    ) -> None:
        outcome = installed.play(VERIFY, flink_gpu_hosts=host.name, flink_gpu_expected_gpus=expected)

        assert outcome.rc != 0
        assert report(outcome, host)["problems"] == [f"4 of 4 GPUs are healthy, {expected} expected"]
        assert (outcome.of(other.name).results, summary(outcome)["hosts"]) == ((), 1)

    def test_remove_leaves_alone_only_the_host_whose_ledger_can_not_be_read(
        self, installed: Fleet, host: BootedHost, other: BootedHost
    ) -> None:
        other.write(LEDGER, "torn\n", 0o600)
        before = installed.snapshots()

        outcome = installed.play(REMOVE)

        assert outcome.rc != 0
        (failure,) = outcome.failures
        assert LEDGER in failure
        assert failure.endswith("; stop the TaskManagers first, or set flink_gpu_force")
        assert installed.snapshots()[other.name] == before[other.name]
        assert differences(installed.fresh[host.name], snapshot(host)) == {}


@pytest.mark.parametrize("playbook", ["site", "verify", "rolling_restart", "rollback", "remove"])
def test_every_playbook_refuses_values_that_are_not_allowed(
    control: ControlNode, host: BootedHost, playbook: str
) -> None:
    outcome = control.play(f"flinkops.gpu.{playbook}", [host], variables={"flink_gpu_vendor": "intel"}, group=GROUP)
    (failure,) = [message for message in outcome.failures if "flink_gpu_vendor" in message]
    assert "must be one of: nvidia, amd, got: intel" in failure
