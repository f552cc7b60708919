"""A host of any scenario, after the role: what lies where, and what task executors that start there get."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from tests.booted.installation import GPUS, HOME, POLICY, SUDOERS
from tests.booted.taskmanager import TaskManager, check_in_force, confinements
from tests.isolation.installation import CURRENT, SCRIPT
from tests.molecule.conftest import Site

pytestmark = pytest.mark.timeout(120, func_only=True)

SETTINGS, TMPFILES = "/etc/flink-gpu-discovery.conf", "/etc/tmpfiles.d/flink-gpu-discovery.conf"


@pytest.fixture
def executors(site: Site) -> Iterator[Iterator[TaskManager]]:
    """Task executors, started one by one: units of their own, such as the role serves if its list has any."""
    served = [unit for unit in site.units if "@" in unit]
    names = (served[0].replace("@", f"@probe{n}") if served else f"probe{n}.service" for n in itertools.count(1))
    if served:
        site.managers.write(served[0], user=site.user)
        yield (site.managers.restart(name) for name in names)
    else:
        yield (site.managers.start(name, user=site.user) for name in names)
    site.managers.stop_all()
    site.host.succeed(SCRIPT, "reclaim")


def test_root_alone_may_change_what_is_installed(site: Site) -> None:
    # What was there before the role came is kept with its owner and mode.
    kept = f"-not -path '{HOME}/before/*'"
    writable = f"find -L {HOME} {SETTINGS} {TMPFILES} -not -type l {kept} ( -not -uid 0 -o -perm /022 )"
    assert site.host.succeed("sh", "-c", writable.replace("(", r"\(").replace(")", r"\)")) == ""
    script = site.inspected.file(SCRIPT)
    assert script.is_symlink
    assert script.linked_to.startswith(f"{HOME}/releases/")
    assert site.inspected.file(CURRENT).is_symlink


def test_permissions_are_there_for_isolation_alone(site: Site) -> None:
    found = {path: site.inspected.file(path).exists for path in (SUDOERS, POLICY)}
    assert found == dict.fromkeys(found, site.isolation == "cgroup")
    if site.isolation == "cgroup":
        assert (site.inspected.file(SUDOERS).mode, site.inspected.file(SUDOERS).user) == (0o440, "root")
        assert site.inspected.run(f"visudo -cf {SUDOERS}").rc == 0


def test_the_doctor_finds_nothing_wrong_as_the_user(site: Site) -> None:
    done = site.host.run(SCRIPT, "doctor", user=site.user)
    assert (done.code, done.err) == (0, ""), done.out


def test_task_executors_hold_disjoint_gpus_and_a_killed_one_gives_its_own_back(
    site: Site, executors: Iterator[TaskManager]
) -> None:
    first, second, third = (next(executors) for _ in range(3))
    confined = site.isolation == "cgroup"
    asked = [executor.call(SCRIPT, str(len(GPUS) // 2)) for executor in (first, second)]
    assert [(done.code, done.err) for done in asked] == [(0, ""), (0, "")]
    if confined:
        check_in_force(first, {0, 1})
        check_in_force(second, {2, 3})
    else:
        assert [done.out for done in asked] == ["0,1\n", "2,3\n"]
    refused = third.call(SCRIPT, "1")
    assert (refused.code, refused.out) == (69, "")
    first.kill()
    site.host.succeed("sh", "-c", f"while systemctl is-active -q {first.unit}; do sleep 0.02; done")
    assert third.call(SCRIPT, "2").code == 0
    if confined:
        check_in_force(third, {0, 1})
        assert len(confinements(site.host)) == 2
