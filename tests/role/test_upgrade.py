"""Upgrading and rolling back, while a TaskManager runs and asks again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.host import BootedHost
from tests.booted.taskmanager import TaskManager, TaskManagers, check_in_force
from tests.isolation.installation import SCRIPT
from tests.role.collection import pretend_version
from tests.role.fleet import GROUP, ISOLATED, prepare_gpus
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

UNIT, HOME, CALLS = "taskmanager.service", "/opt/flink-gpu-discovery", "/home/flink/calls"
VARIABLES = {**ISOLATED, "flink_gpu_taskmanager_units": [UNIT]}
VERSIONS = ("0.91.0", "0.92.0", "0.93.0")
FEWEST_CALLS = 20
# Ends with the TaskManager's unit at the latest.
CALL = f"""\
while [ ! -e {CALLS}.end ]; do
  said=$({SCRIPT} 2 2>&1)
  echo "$? $said" >>{CALLS}
  sleep 0.3
done
"""


class Fleet:
    """A host, and control nodes that have one version of the collection each."""

    def __init__(self, host: BootedHost, controls: dict[str, ControlNode]) -> None:
        self.host = host
        self._controls = controls

    def play(self, version: str, playbook: str = "site", **variables: object) -> Outcome:
        words = {**VARIABLES, **variables}
        return self._controls[version].play(f"flinkops.gpu.{playbook}", [self.host], variables=words, group=GROUP)

    def current(self) -> str:
        """The version that runs, as the script and the folder's name tell."""
        told = self.host.succeed(SCRIPT, "--version").split()[-1]
        target = self.host.succeed("readlink", "--canonicalize", f"{HOME}/current").strip()
        assert target.startswith(f"{HOME}/releases/{told}-"), (target, told)
        return told

    def releases(self) -> dict[str, str]:
        """Names by versions."""
        names = self.host.succeed("ls", f"{HOME}/releases").split()
        return {name.rpartition("-")[0]: name for name in names}


@pytest.fixture(scope="module")
def controls(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, ControlNode]:
    """One for each version."""
    return {version: make_control(collection, version, tmp_path_factory.mktemp(version)) for version in VERSIONS}


def make_control(collection: Path, version: str, folder: Path) -> ControlNode:
    collections = folder / "collections"
    pretend_version(collection, version, collections)
    return ControlNode(folder / "control", collections)


@pytest.fixture(scope="class")
def fleet(host: BootedHost, controls: dict[str, ControlNode]) -> Fleet:
    """The host has the first version."""
    prepare_gpus(host)
    host.succeed("useradd", "--create-home", "flink")
    fleet = Fleet(host, controls)
    fleet.play(VERSIONS[0]).must_succeed()
    return fleet


@pytest.fixture(scope="class")
def manager(fleet: Fleet) -> Iterator[TaskManager]:
    """A TaskManager that holds two GPUs, and asks for them again all the time."""
    managers = TaskManagers(fleet.host, plain=True)
    manager = managers.start(UNIT)
    assert manager.ask().out == "0,1\n"
    manager.start("sh", "-c", CALL)
    yield manager
    managers.close()


@pytest.mark.usefixtures("manager")
class TestReleases:
    """In the order of a host's life."""

    def test_upgrades_switch_to_the_new_release_and_keep_two(self, fleet: Fleet) -> None:
        assert fleet.current() == VERSIONS[0]
        fleet.play(VERSIONS[1]).must_succeed()
        assert (fleet.current(), set(fleet.releases())) == (VERSIONS[1], {*VERSIONS[:2]})
        fleet.play(VERSIONS[2]).must_succeed()
        assert (fleet.current(), set(fleet.releases())) == (VERSIONS[2], {*VERSIONS[1:]})

    def test_rollback_goes_to_the_release_before_and_says_so(self, fleet: Fleet) -> None:
        before, after = fleet.releases()[VERSIONS[2]], fleet.releases()[VERSIONS[1]]
        outcome = fleet.play(VERSIONS[2], "rollback").must_succeed()
        assert fleet.current() == VERSIONS[1]
        assert f"switch current from {before} to {after}" in outcome.stdout

    def test_a_second_rollback_changes_nothing_and_says_so(self, fleet: Fleet) -> None:
        outcome = fleet.play(VERSIONS[2], "rollback").must_succeed()
        assert (fleet.current(), outcome.changed) == (VERSIONS[1], [])
        assert f"{fleet.releases()[VERSIONS[1]]} stays current, it was rolled back to already" in outcome.stdout

    def test_rollback_to_a_release_that_is_not_there_is_refused(self, fleet: Fleet) -> None:
        outcome = fleet.play(VERSIONS[2], "rollback", flink_gpu_release="0.91.0-000000000000")
        (message,) = outcome.failures
        assert "0.91.0-000000000000" in message
        assert all(name in message for name in fleet.releases().values())
        assert (fleet.current(), outcome.changed) == (VERSIONS[1], [])

    def test_the_next_installation_goes_forward_again(self, fleet: Fleet) -> None:
        fleet.play(VERSIONS[2]).must_succeed()
        assert (fleet.current(), set(fleet.releases())) == (VERSIONS[2], {*VERSIONS[1:]})

    def test_rollback_goes_to_the_release_that_is_named(self, fleet: Fleet) -> None:
        name = fleet.releases()[VERSIONS[1]]
        fleet.play(VERSIONS[2], "rollback", flink_gpu_release=name).must_succeed()
        assert fleet.current() == VERSIONS[1]

    def test_the_taskmanager_has_run_on_and_every_call_was_answered(self, fleet: Fleet, manager: TaskManager) -> None:
        fleet.host.succeed("touch", f"{CALLS}.end")
        answers = fleet.host.succeed("cat", CALLS).splitlines()
        assert set(answers) == {"0 0,1"}
        assert len(answers) >= FEWEST_CALLS
        assert fleet.host.succeed("systemctl", "show", "-P", "MainPID", UNIT) == f"{manager.inner_pid}\n"
        check_in_force(manager, {0, 1})
