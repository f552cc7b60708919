"""From an older release to this one, back and forward again, under task executors that hold all GPUs; other ledgers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.booted.installation import HOME
from tests.booted.taskmanager import DENIED, OPEN, TaskManager, check_in_force, confinements, records
from tests.isolation.installation import CURRENT, SCRIPT
from tests.molecule.conftest import Site
from tests.molecule.nvml import UUIDS
from tests.molecule.playing import play

pytestmark = pytest.mark.timeout(120, func_only=True)

NOTES = "/var/lib/executor"
EXECUTORS = {"taskmanager@first": {0, 1}, "taskmanager@second": {2, 3}}
LATE = "late"
UNITS = (*EXECUTORS, LATE)
LEDGER = "/run/flink-gpu-discovery/root/ledger"
FEWEST_CALLS = 5


class Journey:
    """The way of all hosts from release to release."""

    def __init__(self, sites: list[Site]) -> None:
        self.sites = sites
        self.newer = {site.name: current(site) for site in sites}
        self.older = {site.name: Path(noted(site, "release").strip()).name for site in sites}

    def check(self, releases: dict[str, str]) -> None:
        """Each host has its release, the same processes hold the same GPUs, and the kernel confines them to these."""
        for site in self.sites:
            assert current(site) == releases[site.name]
            assert pids(site) == noted_pids(site)
            held: dict[int, set[int]] = {}
            for record in records(site.host):
                held.setdefault(record["owner"]["pid"], set()).add(int(record["index"]))
                assert (record["confinement"], record["owner"]["liveness"]) == ("in force", "alive")
            assert held == {noted_pids(site)[unit]: indexes for unit, indexes in EXECUTORS.items()}


def current(site: Site) -> str:
    return Path(site.host.succeed("readlink", CURRENT).strip()).name


def noted(site: Site, name: str) -> str:
    return site.host.succeed("cat", f"{NOTES}/{name}")


def noted_pids(site: Site) -> dict[str, int]:
    """As they were when the older release was alone on the host."""
    return dict(zip(UNITS, map(int, noted(site, "pids").split()), strict=True))


def pids(site: Site) -> dict[str, int]:
    told = site.host.succeed("systemctl", "show", "-P", "MainPID", *UNITS)
    return dict(zip(UNITS, map(int, told.split()), strict=True))


def answers(site: Site, unit: str) -> list[dict[str, Any]]:
    """What a task executor has noted; it writes line by line."""
    return [json.loads(line) for line in noted(site, unit).splitlines()]


def in_turn(names: list[str]) -> list[str]:
    """Each name once as long as it stays."""
    return [name for index, name in enumerate(names) if names[index - 1 : index] != [name]]


@pytest.fixture(scope="module")
def journey(sites: list[Site]) -> Journey:
    """Its first step was Molecule's converge."""
    return Journey(sites)


@pytest.fixture
def manager(site: Site) -> Iterator[TaskManager]:
    """A task executor that holds nothing yet."""
    yield site.managers.start("holder.service", user=site.user)
    site.managers.stop_all()
    site.host.succeed(SCRIPT, "reclaim")


class TestJourney:
    """In the order of the hosts' life."""

    def test_the_upgrade_takes_nothing_from_task_executors_that_run(self, journey: Journey) -> None:
        assert all(journey.newer[site.name] != journey.older[site.name] for site in journey.sites)
        journey.check(journey.newer)

    def test_a_rollback_takes_nothing_either(self, journey: Journey, tmp_path: Path) -> None:
        play(tmp_path, "flinkops.gpu.rollback").must_succeed()
        journey.check(journey.older)

    def test_nor_does_the_way_forward_again(self, journey: Journey, tmp_path: Path) -> None:
        play(tmp_path, "flinkops.gpu.site").must_succeed()
        journey.check(journey.newer)

    def test_every_call_on_the_way_was_answered_alike(self, journey: Journey) -> None:
        for site in journey.sites:
            older, newer = journey.older[site.name], journey.newer[site.name]
            for unit in UNITS:
                newest = f"until tail -n 1 {NOTES}/{unit} | grep -q {newer}; do sleep 0.1; done"
                site.host.succeed("timeout", "10", "sh", "-c", newest)
                seen = answers(site, unit)
                assert in_turn([answer["release"] for answer in seen]) == [older, newer, older, newer], unit
                assert min([answer["release"] for answer in seen].count(name) for name in (older, newer)) > FEWEST_CALLS
                assert {answer["pid"] for answer in seen} == {noted_pids(site)[unit]}
                told = [(answer["code"], answer["out"], answer["nodes"]) for answer in seen]
                opens = EXECUTORS.get(unit, set(range(len(UUIDS))))
                nodes = [OPEN if index in opens else DENIED for index in range(len(UUIDS))]
                expected = (0, "0,1\n", [nodes]) if unit in EXECUTORS else (69, "", [nodes])
                assert [entry for entry in told if entry != expected] == []

    def test_what_ends_under_the_newer_release_gives_back_what_it_got_under_the_older(self, journey: Journey) -> None:
        for site in journey.sites:
            site.host.succeed("systemctl", "stop", *UNITS)
            assert (records(site.host), confinements(site.host)) == ([], [])


def test_a_ledger_of_another_version_is_refused_and_kept(site: Site, manager: TaskManager) -> None:
    """As a release to come may leave it, from which the host is rolled back."""
    assert manager.call(SCRIPT, "2").code == 0
    ours = site.host.succeed("cat", LEDGER)
    theirs = ours.replace("#flink-gpu-ledger 1\t", "#flink-gpu-ledger 2\t")
    assert theirs != ours
    site.host.succeed("sh", "-c", f"sed -i '1s/ 1/ 2/' {LEDGER}")

    for words in (("2",), ("deallocateAll",), ("reclaim",)):
        done = manager.call(SCRIPT, *words)
        assert (done.code, done.out) == (65, ""), words
        assert "has format version 2, this program knows 1; use the release that wrote it" in done.err

    assert site.host.succeed("cat", LEDGER) == theirs
    assert manager.opens() == {0, 1}
    site.host.succeed("sh", "-c", f"sed -i '1s/ 2/ 1/' {LEDGER}")
    assert manager.call(SCRIPT, "2").out == "0,1\n"
    check_in_force(manager, {0, 1})


def test_releases_that_a_rollback_can_lead_to_refuse_it_as_well(site: Site, manager: TaskManager) -> None:
    releases = site.host.succeed("ls", f"{HOME}/releases").split()
    assert len(releases) > 1
    for release in releases:
        folder = f"/tmp/{release}"
        written = f"mkdir {folder} && printf '#flink-gpu-ledger 2\\tuuid\\n#end 0\\n' | tee {folder}/ledger"
        theirs = manager.shell(written).out
        script = f"{HOME}/releases/{release}/bin/flink-gpu-discovery"
        done = manager.call(script, "1", "--config", "/dev/null", "--ledger", f"{folder}/ledger")
        assert (done.code, done.out) == (65, "")
        assert "has format version 2" in done.err
        assert site.host.succeed("cat", f"{folder}/ledger") == theirs


def test_the_coordination_file_of_flinks_own_script_is_taken_over(site: Site, manager: TaskManager) -> None:
    """The entry of a live task executor holds on, that of an ended one doesn't."""
    file = "/var/tmp/flink-gpu-coordination"
    words = (SCRIPT, "2", "--config", "/dev/null", "--enable-coordination-mode", "--coordination-file", file)
    gone = site.managers.start("gone.service", user=site.user)
    heir = site.managers.start("heir.service", user=site.user)
    manager.shell(f"printf '%s\\n' '0 {gone.inner_pid}' '1 {manager.inner_pid}' '3 {manager.inner_pid}' >{file}")
    gone.kill()
    site.host.succeed("sh", "-c", "while systemctl is-active -q gone.service; do sleep 0.02; done")

    taken = heir.call(*words)

    assert (taken.code, taken.out) == (0, "0,2\n"), taken.err
    assert manager.call(*words).out == "1,3\n"
    told = json.loads(manager.call(SCRIPT, "status", "--config", "/dev/null", "--ledger", file, "--json").out)
    held = {(record["index"], record["uuid"], record["owner"]["pid"]) for record in told["records"]}
    owners = (heir, manager, heir, manager)
    assert held == {(str(index), UUIDS[index], owner.inner_pid) for index, owner in enumerate(owners)}
    site.host.succeed("sh", "-c", f"rm {file}*")
