"""TaskManagers that the role has set up, while systemd, an operator, a dying run or a reboot come over them.

Each starts units of its own, and leaves none.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.installation import NODES
from tests.booted.taskmanager import TaskManager, check_in_force, confinements, records
from tests.isolation.installation import SCRIPT
from tests.molecule.conftest import ENGINE, Site
from tests.molecule.playing import play
from tests.role.fleet import differences, snapshot
from tests.support.script import ROOT

pytestmark = pytest.mark.timeout(240, func_only=True)

SITE = "flinkops.gpu.site"
FILES = "install | Put settings, permissions and drop-ins in their places"
LIST = [f"DeviceAllow={node} rw" for node in (*NODES, "/dev/nvidiactl")]
SHARES = ({0, 1}, {2, 3})  # of the two instances, in the order in which they ask
ENABLED = "[Install]\nWantedBy=multi-user.target"
DRIVER = "gpu-driver.service"
# As udev does for a driver that is loaded early: the nodes are there before services start.
LOADED = "\n".join(
    (
        "[Unit]\nDefaultDependencies=no\nBefore=basic.target\n[Service]\nType=oneshot",
        *(f"ExecStart=mknod --mode=0666 {node} c 195 {index}" for index, node in enumerate(NODES)),
        "ExecStart=mknod --mode=0666 /dev/nvidiactl c 195 255",
        "[Install]\nWantedBy=basic.target\n",
    )
)
BOOT_SECONDS = 60.0

# What would keep a call from its GPUs, as the unit's own `doctor --quick` tells before the start: exit code and words.
IN_THE_WAY = {
    "NoNewPrivileges=yes": (71, "sudo: the process may gain no privileges"),
    "RestrictSUIDSGID=yes": (71, "sudo: the process may gain no privileges"),
    "PrivateUsers=yes": (71, "sudo: only some users exist in here"),
    "PrivateDevices=yes": (71, "nodes: /dev/nvidia0 of GPU 0 is no device node"),
    "ProtectSystem=strict": (74, "ledger: /run/flink-gpu-discovery/root is on a read-only file system"),
    "ProtectControlGroups=yes": (71, "cgroup: /sys/fs/cgroup/"),
    "CapabilityBoundingSet=": (71, "sudo: the bounding set of capabilities is empty"),
}


@pytest.fixture
def holding(site: Site) -> Iterator[list[TaskManager]]:
    """Two instances of the template in the role's list, which hold all GPUs; afterwards nothing is left of them."""
    yield _start(site)
    site.managers.stop_all()
    assert (records(site.host), confinements(site.host)) == ([], [])


def _start(site: Site) -> list[TaskManager]:
    (template,) = site.units
    site.managers.write(template, ENABLED, user=site.user)
    return [_ask(site, site.managers.restart(template.replace("@", f"@{name}"))) for name in ("one", "two")]


def _ask(site: Site, manager: TaskManager) -> TaskManager:
    asked = manager.call(SCRIPT, str(site.amount))
    assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
    return manager


def _check(site: Site, managers: list[TaskManager]) -> None:
    """Each is confined to its own, as before, and the ledger and the cgroups know of these and no other."""
    for manager, share in zip(managers, SHARES, strict=True):
        check_in_force(manager, share)
    told = {(record["owner"]["pid"], int(record["index"])) for record in records(site.host)}
    assert told == {(manager.inner_pid, gpu) for manager, share in zip(managers, SHARES, strict=True) for gpu in share}
    found = confinements(site.host)
    assert len(found) == len(managers)
    assert all(any(folder.endswith(manager.cgroup_now()) for folder in found) for manager in managers)


@pytest.mark.parametrize(
    "words",
    [
        ["daemon-reload"],
        ["daemon-reexec"],
        ["set-property", "--runtime", "{unit}", "CPUWeight=50"],
        ["set-property", "--runtime", "{unit}", *LIST],
        ["set-property", "--runtime", "{unit}", "DevicePolicy=closed", *LIST],
    ],
    ids=lambda words: f"{words[0]} {words[-1] if len(words) > 1 else ''}".strip(),
)
def test_what_systemd_is_told_leaves_confinement_and_ledger(
    site: Site, holding: list[TaskManager], words: list[str]
) -> None:
    site.host.succeed("systemctl", *(word.format(unit=holding[0].unit) for word in words))
    _check(site, holding)
    site.host.succeed("systemctl", "daemon-reload")
    _check(site, holding)


def test_a_drop_in_that_allows_all_gpus_opens_none(site: Site, holding: list[TaskManager]) -> None:
    site.host.unit(f"{holding[0].unit}.d/gpus.conf", "\n".join(("[Service]", "DevicePolicy=closed", *LIST, "")))
    _check(site, holding)
    site.host.succeed("systemctl", "daemon-reexec")
    _check(site, holding)
    holding[0] = _ask(site, site.managers.restart(holding[0].unit))
    _check(site, holding)


def test_cleaning_of_temporary_files_leaves_the_ledger(site: Site, holding: list[TaskManager]) -> None:
    site.host.succeed("systemd-tmpfiles", "--clean")
    _check(site, holding)
    site.host.succeed("systemd-tmpfiles", "--create")
    _check(site, holding)


def test_a_restarted_service_gets_a_confinement_of_its_own(site: Site, holding: list[TaskManager]) -> None:
    before = holding[0].cgroup_now()
    holding[0] = site.managers.restart(holding[0].unit)
    assert {record["owner"]["pid"] for record in records(site.host)} == {holding[1].inner_pid}
    assert [folder for folder in confinements(site.host) if folder.endswith(before)] == []
    assert holding[0].opens() == set(range(len(NODES)))
    _ask(site, holding[0])
    assert holding[0].cgroup_now() != before
    _check(site, holding)


@pytest.fixture
def sandbox(site: Site, request: pytest.FixtureRequest) -> Iterator[str]:
    """An instance of the template whose administrator has sandboxed it after the role had come."""
    (template,) = site.units
    unit, drop_in = template.replace("@", "@sandboxed"), f"{template}.d/90-sandbox.conf"
    site.managers.write(template, user=site.user)
    site.host.unit(drop_in, f"[Service]\n{request.param}\n")
    yield unit
    site.host.run("systemctl", "stop", unit)
    site.managers.stop_all()
    site.host.succeed("rm", f"/etc/systemd/system/{drop_in}", f"/etc/systemd/system/{template}")
    site.host.succeed("systemctl", "daemon-reload")


@pytest.mark.parametrize(("sandbox", "told"), IN_THE_WAY.items(), ids=IN_THE_WAY, indirect=["sandbox"])
def test_a_sandbox_that_stands_in_the_way_keeps_the_unit_down_and_is_named(
    site: Site, sandbox: str, told: tuple[int, str]
) -> None:
    since = site.host.succeed("date", "+%s.%N").strip()
    assert site.host.run("systemctl", "start", sandbox).code != 0
    code, words = told
    journal = site.host.succeed("journalctl", "-o", "cat", "--no-pager", f"--unit={sandbox}", f"--since=@{since}")
    assert f"flink-gpu-discovery: {words}" in journal
    assert f"Control process exited, code=exited, status={code}/" in journal
    assert (records(site.host), confinements(site.host)) == ([], [])


@pytest.mark.parametrize(
    "sandbox",
    [
        "ProtectSystem=strict\nReadWritePaths=/run/flink-gpu-discovery",
        "ProtectSystem=full\nProtectHome=yes\nPrivateTmp=yes",
    ],
    ids=["strict-but-for-the-ledger", "full"],
    indirect=True,
)
def test_a_sandbox_that_does_not_is_confined(site: Site, sandbox: str) -> None:
    check_in_force(_ask(site, site.managers.restart(sandbox)), SHARES[0])


def test_a_run_that_is_killed_half_way_leaves_executors_alone_and_the_next_one_mends(
    sites: list[Site], tmp_path: Path
) -> None:
    holding = [_start(site) for site in sites]
    try:
        before = [snapshot(site.host) for site in sites]
        checked = play(_folder(tmp_path, "check"), SITE, check=True, flink_gpu_wait=1).must_succeed()
        of_files = [number for number, result in enumerate(checked.results, 1) if result.task.endswith(FILES)]
        changed = []
        for number in (of_files[0], of_files[-1] + 1):  # before any host has got it, and after all have
            assert play(_folder(tmp_path, f"killed-{number}"), SITE, kill_at=number, flink_gpu_wait=1).killed
            changed.append(
                [differences(was, snapshot(site.host)) != {} for was, site in zip(before, sites, strict=True)]
            )
            for site, managers in zip(sites, holding, strict=True):
                _check(site, managers)
                assert managers[0].call(SCRIPT, str(site.amount)).out == "0,1\n"
        assert changed == [[False] * len(sites), [True] * len(sites)]
        play(_folder(tmp_path, "whole"), SITE).must_succeed()
        for site, managers, was in zip(sites, holding, before, strict=True):
            assert differences(was, snapshot(site.host)) == {}
            _check(site, managers)
    finally:
        for site in sites:
            site.managers.stop_all()


def _folder(parent: Path, name: str) -> Path:
    folder = parent / name
    folder.mkdir()
    return folder


def test_a_restarted_host_starts_its_units_which_get_gpus_again(site: Site) -> None:
    """Device nodes come back before units are started, as by udev. What was held in the life before is not any more."""
    units = [manager.unit for manager in _start(site)]
    site.host.unit(DRIVER, LOADED)
    site.host.succeed("systemctl", "enable", DRIVER, *units)
    try:
        _reboot(site)
        managers = [site.managers.join(unit) for unit in units]  # which the boot has started
        assert (records(site.host), confinements(site.host)) == ([], [])
        for manager in managers:
            _ask(site, manager)
        _check(site, managers)
    finally:
        site.host.succeed("systemctl", "disable", DRIVER, *units)
        site.host.succeed("rm", f"/etc/systemd/system/{DRIVER}")
        site.managers.stop_all()
    assert (records(site.host), confinements(site.host)) == ([], [])


def _reboot(site: Site) -> None:
    site.host.detach()
    words = [str(ROOT / "tools/booted-host.sh"), "restart", site.host.name]
    subprocess.run(words, env={**os.environ, "BOOTED_ENGINE": ENGINE}, check=True, timeout=BOOT_SECONDS)
    site.host.attach()
    end = time.monotonic() + BOOT_SECONDS
    while site.host.run("systemctl", "is-system-running").out.strip() not in ("running", "degraded"):
        assert time.monotonic() < end
        time.sleep(0.1)
