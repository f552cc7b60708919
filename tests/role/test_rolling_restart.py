"""TaskManagers of real Flink are restarted one after the other, each until it is back with its GPUs."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.engine import CannotBootError
from tests.booted.host import BootedHost
from tests.flink.configuration import LOOPBACK
from tests.flink.conftest import flink_home
from tests.role.fleet import GROUP, ISOLATED, prepare_gpus
from tests.role.hosts import BOOKWORM
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode
from tests.role.standalone_flink import TEMPLATE, UNITS, StandaloneFlink, mounts

__all__ = ["flink_home"]

pytestmark = [pytest.mark.booted, pytest.mark.flink, pytest.mark.timeout(120, func_only=True)]

SITE, RESTART = "flinkops.gpu.site", "flinkops.gpu.rolling_restart"
FIRST, SECOND = UNITS
NAMED = {"flink_gpu_taskmanager_units": [TEMPLATE], "flink_gpu_taskmanager_hosts": [LOOPBACK]}


@pytest.fixture(scope="class")
def host(flink_home: Path) -> Iterator[BootedHost]:
    """A host with Flink and a JVM."""
    try:
        booted = BootedHost(BOOKWORM.layout, suite=BOOKWORM.suite, mounts=mounts(flink_home))
    except CannotBootError as error:
        pytest.skip(str(error))
    with booted:
        yield booted


@pytest.fixture(scope="class")
def flink(control: ControlNode, host: BootedHost, flink_home: Path) -> Iterator[StandaloneFlink]:
    """Two TaskManagers run, the first of which was started before the role gave them a drop-in."""
    with tempfile.TemporaryDirectory() as folder, StandaloneFlink(host, flink_home, Path(folder)) as standalone:
        prepare_gpus(host)
        # With an id that stays, the other is told from its predecessor by its port.
        host.unit(f"{FIRST}.d/id.conf", "[Service]\nEnvironment=ARGUMENTS=-Dtaskmanager.resource-id=first\n")
        control.play(SITE, [host], variables=ISOLATED, group=GROUP).must_succeed()
        standalone.start(FIRST)
        control.play(SITE, [host], variables={**ISOLATED, **NAMED}, group=GROUP).must_succeed()
        standalone.start(SECOND)
        standalone.wait_for(2)
        yield standalone


def play(control: ControlNode, playbook: str, flink: StandaloneFlink, *hosts: BootedHost, **changed: object) -> Outcome:
    values = {**ISOLATED, **NAMED, "flink_gpu_rest_url": flink.rest_url, "flink_gpu_restart_timeout": 30, **changed}
    return control.play(playbook, hosts, variables=values, group=GROUP)


def pids(flink: StandaloneFlink) -> tuple[int, int]:
    return flink.pid(FIRST), flink.pid(SECOND)


def restarts(outcome: Outcome) -> list[str]:
    """How each restart ended that was begun."""
    name = "restart_unit | Restart the TaskManager"
    return [result.status for result in outcome.results if result.task == name]


class TestRestarting:
    """Two TaskManagers on one host, two GPUs each; one test builds upon the other."""

    def test_site_restarts_only_the_one_that_runs_without_its_drop_in(
        self, control: ControlNode, flink: StandaloneFlink, host: BootedHost
    ) -> None:
        first, second = pids(flink)

        with flink.observed() as counts:
            outcome = play(control, SITE, flink, host, flink_gpu_restart_taskmanagers=True).must_succeed()

        assert (restarts(outcome), counts) == (["changed"], [2, 1, 2])
        # It may register by any of them.
        assert outcome.named("restart_outdated | Gather the names by which TaskManagers register").status == "ok"
        assert flink.pid(FIRST) != first
        assert flink.pid(SECOND) == second
        assert flink.held() == dict.fromkeys(pids(flink), 2)

    @pytest.mark.parametrize(
        ("address", "told"),
        [("http://127.0.0.1:9", "Connection refused"), ("{url}/config?", "OK ")],
        ids=["nobody", "another-answer"],
    )
    def test_nothing_is_restarted_where_flink_can_not_be_asked(
        self, control: ControlNode, flink: StandaloneFlink, host: BootedHost, address: str, told: str
    ) -> None:
        before = pids(flink)
        address = address.format(url=flink.rest_url)

        outcome = play(control, RESTART, flink, host, flink_gpu_rest_url=address)

        assert (outcome.rc != 0, restarts(outcome), pids(flink)) == (True, [], before)
        (message,) = outcome.failures
        assert message.startswith(f"{FIRST} is not restarted: flink_gpu_rest_url {address} lists no TaskManagers: ")
        assert told in message

    def test_one_is_down_at_a_time_and_each_has_its_gpus_when_it_is_back(
        self, control: ControlNode, flink: StandaloneFlink, host: BootedHost
    ) -> None:
        before = pids(flink)

        with flink.observed() as counts:
            outcome = play(control, RESTART, flink, host).must_succeed()

        assert (restarts(outcome), counts) == (["changed"] * 2, [2, 1, 2, 1, 2])
        assert not set(pids(flink)) & set(before)
        assert flink.held() == dict.fromkeys(pids(flink), 2)

    def test_the_play_stops_at_the_one_that_comes_back_without_gpus(
        self, control: ControlNode, flink: StandaloneFlink, host: BootedHost
    ) -> None:
        before = pids(flink)
        forbid_gpus(host, at=SECOND)

        with BootedHost(BOOKWORM.layout, suite=BOOKWORM.suite) as next_one:
            outcome = play(control, RESTART, flink, host, next_one)

        assert outcome.rc != 0
        assert len(outcome.failures) == 1
        assert outcome.failures[0].startswith(f"{SECOND} is back, but holds no GPU by the ledger")
        assert outcome.of(next_one.name).results == ()
        assert not set(pids(flink)) & set(before)
        assert (flink.held(), len(flink.registered())) == ({flink.pid(FIRST): 2}, 2)

    def test_the_second_is_left_running_when_the_first_does_not_come_back(
        self, control: ControlNode, flink: StandaloneFlink, host: BootedHost
    ) -> None:
        second = flink.pid(SECOND)

        elsewhere = {"flink_gpu_taskmanager_hosts": ["elsewhere"], "flink_gpu_restart_timeout": 2}
        outcome = play(control, RESTART, flink, host, **elsewhere)

        assert (outcome.rc != 0, restarts(outcome), flink.pid(SECOND)) == (True, ["changed"], second)
        told = f"{FIRST} was restarted, but within 2 s {flink.rest_url} shows no new TaskManager at elsewhere; see"
        assert outcome.failures[-1].startswith(told)


def forbid_gpus(host: BootedHost, *, at: str) -> None:
    """From the next start of the unit on, the settings grant less than Flink asks for, which doctor can't know."""
    change = "s/max-gpus-per-owner = 2/max-gpus-per-owner = 1/"
    host.unit(f"{at}.d/forbid.conf", f"[Service]\nExecStartPre=+/bin/sed -i '{change}' /etc/flink-gpu-discovery.conf\n")
