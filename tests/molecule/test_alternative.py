"""Other accounts and paths, AMD's GPUs, two resources with UUIDs: task executors run what Flink's own file says."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf

from tests.booted.host import ContainerHost
from tests.booted.taskmanager import DENIED, TaskManager
from tests.isolation.installation import CURRENT, SCRIPT
from tests.molecule.amd import UUIDS
from tests.molecule.conftest import Site
from tests.support.script import Result

pytestmark = pytest.mark.timeout(120, func_only=True)

CONF = "/srv/flink/settings"
FILE = f"{CONF}/flink-conf.yaml"
EXTRA_USER, GROUP = "batch", "accelerators"
NAMES = "external-resources"
# The larger one is asked for first.
AMOUNTS = {"accelerator": 2, "spare": 1}
WAIT_SECONDS = 1.5


class Call(NamedTuple):
    """What Flink's GPU driver runs for a resource."""

    name: str
    amount: int
    words: list[str]


def calls(settings: dict[str, str]) -> list[Call]:
    """Of each resource that Flink's GPU driver serves; its own script is split at blanks, without any quoting."""
    found = []
    for name in settings[NAMES].split(";"):
        own = {
            key.removeprefix(f"external-resource.{name}."): value
            for key, value in settings.items()
            if key.startswith(f"external-resource.{name}.")
        }
        if own.get("driver-factory.class", "").endswith(".GPUDriverFactory"):
            path, args = (own[f"param.discovery-script.{key}"] for key in ("path", "args"))
            found.append(Call(name, int(own["amount"]), [path, own["amount"], *args.split()]))
    return found


def read(host: ContainerHost, path: str) -> dict[str, str]:
    """As Flink reads it, which tests/flinkconf compares with Flink itself."""
    reading = flink_conf.read(host.succeed("cat", path).encode(), "flink-conf")
    assert reading.warnings == []
    return dict(reading.settings)


def ask(manager: TaskManager, site: Site) -> dict[str, Result]:
    """What Flink does when a TaskManager starts."""
    return {call.name: manager.call(*call.words) for call in calls(read(site.host, FILE))}


def ids(done: Result) -> set[str]:
    assert (done.code, done.err) == (0, "")
    return set(done.out.rstrip("\n").split(","))


def records(site: Site) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(site.host.succeed(SCRIPT, "status", "--json"))["records"]
    return told


def held(site: Site) -> dict[tuple[int, str], set[str]]:
    """UUIDs in the ledger, by owner and resource."""
    found: dict[tuple[int, str], set[str]] = {}
    for record in records(site):
        found.setdefault((record["owner"]["pid"], record["resource"]), set()).add(record["uuid"])
    return found


def stop(site: Site, manager: TaskManager) -> None:
    manager.hang_up()
    site.host.succeed("systemctl", "stop", manager.unit)


@pytest.fixture
def executors(site: Site) -> Iterator[Iterator[TaskManager]]:
    """Instances of the unit that the role serves."""
    (template,) = site.units
    site.managers.write(template, user=site.user)
    yield (site.managers.restart(template.replace("@", f"@{name}")) for name in "abc")
    site.managers.stop_all()
    assert records(site) == []


def test_flinks_file_says_what_is_asked_for_and_the_rest_as_the_operator_has_it(site: Site) -> None:
    host = site.host
    (backup,) = host.succeed("sh", "-c", f"ls -d {CONF}/* | grep -vx {FILE}").split()
    before, after = read(host, backup), read(host, FILE)

    assert before[NAMES].split(";") == ["npu"]
    assert after[NAMES].split(";") == ["npu", "accelerator", "spare"]
    assert {call.name: call.amount for call in calls(after)} == AMOUNTS
    assert {call.words[0] for call in calls(after)} == {SCRIPT}

    ours = tuple(f"external-resource.{name}." for name in AMOUNTS)
    theirs = [
        {key: value for key, value in each.items() if not key.startswith(ours) and key != NAMES}
        for each in (before, after)
    ]
    assert theirs[0] == theirs[1]
    lines = [host.succeed("cat", path).splitlines() for path in (backup, FILE)]
    assert [line for line in lines[0] if line not in lines[1] and not line.startswith((NAMES, *ours))] == []
    assert PurePosixPath(backup).name.startswith("flink-conf.yaml.")


def test_resources_get_disjoint_gpus_and_the_next_task_executor_the_rest_or_none(
    site: Site, executors: Iterator[TaskManager]
) -> None:
    first, second = next(executors), next(executors)
    given = {name: ids(done) for name, done in ask(first, site).items()}
    assert {name: len(uuids) for name, uuids in given.items()} == AMOUNTS
    assert given == {"accelerator": {*UUIDS[:2]}, "spare": {UUIDS[2]}}
    assert held(site) == {(first.inner_pid, name): uuids for name, uuids in given.items()}

    start = time.monotonic()
    done = ask(second, site)
    assert time.monotonic() - start >= WAIT_SECONDS
    assert (done["accelerator"].code, done["accelerator"].out) == (69, "")
    assert "too few GPUs: 2 asked for, 4 seen, 4 healthy, " in done["accelerator"].err
    assert ids(done["spare"]) == {UUIDS[3]}
    assert {name: ids(again) for name, again in ask(first, site).items()} == given

    stop(site, first)
    assert held(site) == {(second.inner_pid, "spare"): {UUIDS[3]}}
    assert ids(ask(second, site)["accelerator"]) == {*UUIDS[:2]}


def test_who_waits_gets_what_is_given_back_meanwhile(site: Site, executors: Iterator[TaskManager]) -> None:
    first, second = next(executors), next(executors)
    ask(first, site)
    (large, _) = calls(read(site.host, FILE))
    waiting = second.start(*large.words)
    time.sleep(WAIT_SECONDS / 3)  # it is waiting by then
    stop(site, first)
    assert ids(waiting.finish()) == {*UUIDS[:2]}


def test_nobody_is_confined(site: Site, executors: Iterator[TaskManager]) -> None:
    first = next(executors)
    ask(first, site)
    assert DENIED not in {first.try_open(f"/dev/dri/renderD{minor}") for minor in range(128, 132)}
    assert site.host.succeed("find", "/sys/fs/cgroup", "-type", "d", "-name", "flink-gpu-*") == ""


def test_the_other_user_shares_the_ledger_and_a_dead_owners_gpus_stay_until_they_are_reclaimed(
    site: Site, executors: Iterator[TaskManager]
) -> None:
    """Its unit is none of the role's, so nothing gives them back at its end."""
    other = site.managers.start("other.service", user=EXTRA_USER)
    taken = set(chain.from_iterable(ids(done) for done in ask(other, site).values()))
    assert {record["owner"]["uid"] for record in records(site)} == {int(site.host.succeed("id", "-u", EXTRA_USER))}
    other.kill()
    site.host.succeed("sh", "-c", f"while systemctl is-active -q {other.unit}; do sleep 0.02; done")

    manager = next(executors)  # whose unit reclaims when it ends, and not before
    refused = ask(manager, site)
    assert (refused["accelerator"].code, refused["accelerator"].out) == (69, "")
    assert {record["uuid"] for record in records(site) if record["owner"]["liveness"] == "dead"} == taken
    site.host.succeed(SCRIPT, "reclaim")
    assert ids(ask(manager, site)["accelerator"]) == {*UUIDS[:2]}


def test_accounts_and_interpreter_are_as_asked_for(site: Site) -> None:
    for name in (site.user, EXTRA_USER):
        account = site.inspected.user(name)
        assert (account.group, account.shell, account.home) == (GROUP, "/usr/sbin/nologin", "/nonexistent")
    folder = site.inspected.file("/run/flink-gpu-discovery")
    assert (folder.user, folder.group, folder.mode) == (site.user, GROUP, 0o770)
    head = site.host.succeed("head", "-n1", f"{CURRENT}/bin/flink-gpu-discovery")
    assert head == "#!/srv/python/bin/python3 -IS\n"
    assert site.host.run("find", f"{CURRENT}/", "-name", "*pynvml*").out == ""  # AMD's need none
