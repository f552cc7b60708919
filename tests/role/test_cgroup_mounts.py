"""The hierarchy by which TaskManagers are confined: used where it is mounted, mounted where it is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.booted.host import BootedHost
from tests.booted.taskmanager import TaskManagers, records
from tests.role.fleet import GROUP, ISOLATED, differences, prepare_gpus, snapshot
from tests.role.hosts import HYBRID, HostKind
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

WITHOUT_DEVICES = HostKind("bookworm", "v1")  # until the test has unmounted them
UNIT = "taskmanager.service"
VARIABLES = {**ISOLATED, "flink_gpu_taskmanager_units": [UNIT]}
MOUNT, PLACE = "run-flink_gpu_cgroup.mount", "/run/flink_gpu_cgroup"


class Bare(NamedTuple):
    """What a host had before the role came."""

    mounts: list[str]
    files: dict[str, str]


def mounts(host: BootedHost) -> list[str]:
    """Of cgroups of either version: place and type, as the kernel shows them."""
    lines = [line.split() for line in host.succeed("cat", "/proc/self/mounts").splitlines()]
    return [f"{words[1]} {words[2]}" for words in lines if words[2].startswith("cgroup")]


def shown(host: BootedHost, unit: str, name: str) -> str:
    return host.succeed("systemctl", "show", "-P", name, unit)


def held(host: BootedHost) -> list[tuple[int, str]]:
    """Each GPU's owner, and whether it is confined."""
    return [(record["owner"]["pid"], record["confinement"]) for record in records(host)]


@pytest.fixture
def managers(host: BootedHost) -> Iterator[TaskManagers]:
    managers = TaskManagers(host, plain=True)
    yield managers
    managers.close()


@pytest.mark.parametrize("host", [HYBRID], indirect=True, ids=str)
def test_nothing_is_mounted_where_systemd_has_mounted_it(
    control: ControlNode, host: BootedHost, managers: TaskManagers
) -> None:
    prepare_gpus(host)
    before = mounts(host)
    control.play("flinkops.gpu.site", [host], variables=VARIABLES, group=GROUP).must_succeed()
    assert mounts(host) == before
    assert host.run("systemctl", "cat", MOUNT).code != 0
    manager = managers.start(UNIT)
    asked = manager.ask()
    assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
    assert manager.opens() == {0, 1}


@pytest.fixture(scope="class")
def bare(host: BootedHost) -> Bare:
    """A host on which neither cgroup v2 nor the controller ``devices`` is mounted."""
    prepare_gpus(host)
    host.succeed("umount", "/sys/fs/cgroup/devices")
    return Bare(mounts(host), snapshot(host))


@pytest.mark.parametrize("host", [WITHOUT_DEVICES], indirect=True, ids=["nothing-mounted"])
class TestMounting:
    """In the order of a host's life."""

    def test_a_taskmanager_is_confined_by_what_the_role_mounts(
        self, control: ControlNode, host: BootedHost, managers: TaskManagers, bare: Bare
    ) -> None:
        managers.write(UNIT)
        control.play("flinkops.gpu.site", [host], variables=VARIABLES, group=GROUP).must_succeed()
        assert mounts(host) == [*bare.mounts, f"{PLACE} cgroup2"]
        assert shown(host, UNIT, "RequiresMountsFor").split() == [PLACE]
        manager = managers.restart(UNIT)
        asked = manager.ask()
        assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
        assert (manager.opens(), held(host)) == ({0, 1}, [(manager.inner_pid, "in force")] * 2)
        manager.kill()
        host.run("systemctl", "stop", UNIT)  # waits for ExecStopPost=
        assert held(host) == []
        assert host.succeed("find", PLACE, "-mindepth", "1", "-name", "flink-gpu-*") == ""

    def test_it_is_mounted_again_at_the_next_boot(self, host: BootedHost, bare: Bare) -> None:
        assert host.succeed("systemctl", "is-enabled", MOUNT) == "enabled\n"
        assert MOUNT in shown(host, "multi-user.target", "Wants").split()
        host.succeed("systemctl", "stop", MOUNT)
        assert mounts(host) == bare.mounts
        host.succeed("systemctl", "start", UNIT)
        assert mounts(host) == [*bare.mounts, f"{PLACE} cgroup2"]
        host.succeed("systemctl", "stop", UNIT)

    def test_a_second_run_changes_nothing(self, control: ControlNode, host: BootedHost) -> None:
        again = control.play("flinkops.gpu.site", [host], variables=VARIABLES, group=GROUP).must_succeed()
        assert again.changed == []

    def test_it_goes_when_isolation_is_switched_off(self, control: ControlNode, host: BootedHost, bare: Bare) -> None:
        variables = {**VARIABLES, "flink_gpu_isolation": "none"}
        control.play("flinkops.gpu.site", [host], variables=variables, group=GROUP).must_succeed()
        assert mounts(host) == bare.mounts
        assert host.run("systemctl", "cat", MOUNT).code != 0
        assert MOUNT not in shown(host, "multi-user.target", "Wants").split()

    def test_removal_unmounts_it_and_leaves_no_trace(self, control: ControlNode, host: BootedHost, bare: Bare) -> None:
        control.play("flinkops.gpu.site", [host], variables=VARIABLES, group=GROUP).must_succeed()
        assert mounts(host) == [*bare.mounts, f"{PLACE} cgroup2"]
        host.succeed("rm", f"/etc/systemd/system/{UNIT}", "/opt/agent_process.py")
        control.play("flinkops.gpu.remove", [host], variables=VARIABLES, group=GROUP).must_succeed()
        assert mounts(host) == bare.mounts
        assert differences(bare.files, snapshot(host)) == {}
