"""A removal: refused while GPUs are held, and then the hosts are as they were before the role came."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.booted.installation import HOME
from tests.booted.taskmanager import AGENT, confinements
from tests.isolation.installation import SCRIPT
from tests.molecule.conftest import Site
from tests.molecule.listing import everything, lasting, prepared
from tests.molecule.playing import play
from tests.role.fleet import differences, snapshot
from tests.role.outcome import Outcome

pytestmark = pytest.mark.timeout(120, func_only=True)

REMOVE, TOLD = "flinkops.gpu.remove", "absent | Tell what was done, or would be"
UNIT, CONF = "taskmanager.service", "/opt/flink/conf/config.yaml"
OURS, OWN = (f"/etc/systemd/system/{UNIT}.d/{name}" for name in ("50-flink-gpu.conf", "10-ours.conf"))
MOVE = "org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager AttachProcessesToUnit"
# By the bus; or by systemd, once the bus lets it pass.
DENIED, PASSED = (f"Call failed: {said}\n" for said in ("Access denied", "Unit none.service not loaded."))


def pid(site: Site) -> int:
    return int(site.host.succeed("systemctl", "show", "-P", "MainPID", UNIT))


def holders(site: Site) -> set[tuple[int, str]]:
    """Who holds GPUs, and whether it is confined to them."""
    records = json.loads(site.host.succeed(SCRIPT, "status", "--json"))["records"]
    return {(record["owner"]["pid"], record["confinement"]) for record in records}


def moving(site: Site) -> str:
    """What the system bus, or systemd, says to a user of TaskManagers that wants processes moved."""
    return site.host.run("busctl", "call", *MOVE.split(), "ssau", "none.service", "", "0", user="older").err


class TestRemoval:
    """In the order of the hosts' life."""

    def test_the_role_has_taken_the_place_of_the_operators_things(self, sites: list[Site]) -> None:
        for site in sites:
            assert site.host.succeed("readlink", SCRIPT).startswith(f"{HOME}/")
            assert site.host.succeed("systemctl", "show", "-P", "DropInPaths", UNIT).split() == [OWN, OURS]
            assert "external-resources: [npu, gpu]\n" in site.host.succeed("cat", CONF)
            assert site.inspected.user("flink").gecos == "made by flinkops.gpu"
            assert moving(site) == (DENIED if site.isolation == "cgroup" else PASSED)

    def test_it_is_refused_while_gpus_are_held_and_nothing_changes(self, sites: list[Site], tmp_path: Path) -> None:
        for site in sites:
            site.host.succeed("systemctl", "start", UNIT)
        held = {}
        for site in sites:
            site.host.succeed(
                "timeout", "10", "sh", "-c", f"until {SCRIPT} status | grep -w {pid(site)}; do sleep 0.1; done"
            )
            held[site.name] = {(pid(site), "in force" if site.isolation == "cgroup" else None)}
        before = {site.name: snapshot(site.host) for site in sites}

        outcome = play(tmp_path, REMOVE)

        for site in sites:
            (message,) = outcome.of(site.name).failures
            assert f"pid {pid(site)} holds GPUs" in message
            assert "user flink, which was made by the role, has processes" in message
            assert outcome.of(site.name).changed == []
            assert differences(before[site.name], snapshot(site.host)) == {}
            assert holders(site) == held[site.name]

    def test_check_mode_changes_nothing(self, sites: list[Site], checked: Outcome) -> None:
        """The fixture has compared the hosts."""
        assert all(checked.of(site.name).changed for site in sites)

    def test_it_does_what_check_mode_said(self, sites: list[Site], checked: Outcome, tmp_path: Path) -> None:
        removed = play(tmp_path, REMOVE).must_succeed()
        for site in sites:
            assert removed.of(site.name).changed == checked.of(site.name).changed
            assert removed.of(site.name).named(TOLD).msg == checked.of(site.name).named(TOLD).msg

    def test_every_path_is_as_it_was_before_the_role_came(self, sites: list[Site]) -> None:
        for site in sites:
            assert differences(lasting(prepared(site, "everything")), everything(site)) == {}, site.name

    def test_nothing_that_runs_or_is_mounted_knows_of_it(self, sites: list[Site]) -> None:
        for site in sites:
            assert site.host.succeed("systemctl", "show", "-P", "DropInPaths", UNIT) == f"{OWN}\n"
            assert site.host.succeed("systemctl", "show", "-P", "NeedDaemonReload", UNIT) == "no\n"
            site.host.succeed("systemctl", "stop", "keeper")
            assert confinements(site.host) == []
            assert "flink" not in site.host.succeed("findmnt", "--noheadings", "--list", "--output=TARGET")
            assert moving(site) == PASSED
            assert "not allowed" in site.host.run("sudo", "-l", "-U", "older").out
            assert [site.host.run("getent", "passwd", name).code for name in ("older", "flink")] == [0, 2]
            processes = site.host.succeed("ps", "-e", "-o", "user=,args=").splitlines()
            assert [line for line in processes if "flink" in line.replace(site.host.name, "")] == []

    def test_a_second_removal_changes_nothing(self, sites: list[Site], tmp_path: Path) -> None:
        again = play(tmp_path, REMOVE).must_succeed()
        assert again.changed == []
        for site in sites:
            assert differences(prepared(site, "prepared"), snapshot(site.host)).keys() <= {AGENT}


@pytest.fixture(scope="module")
def checked(sites: list[Site], tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What a removal in check mode says once nobody holds GPUs; no host has changed by it."""
    for site in sites:
        # Else systemd would forget the stopped unit, and read its drop-ins when asked for them.
        site.host.succeed("systemd-run", "--unit=keeper", f"--property=After={UNIT}", "sleep", "infinity")
        site.host.succeed("systemctl", "stop", UNIT)
        assert holders(site) == set()
    before = {site.name: everything(site) for site in sites}
    outcome = play(tmp_path_factory.mktemp("check"), REMOVE, check=True).must_succeed()
    assert [differences(before[site.name], everything(site)) for site in sites] == [{}] * len(sites)
    return outcome
