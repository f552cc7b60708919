"""A release of Debian on a layout of cgroups: it is what its name says, and confines by that layout's version."""

from __future__ import annotations

import pytest

from tests.booted.taskmanager import TaskManager, check_in_force, confinements, records
from tests.isolation.installation import CURRENT, SCRIPT
from tests.molecule.conftest import Site

pytestmark = pytest.mark.timeout(120, func_only=True)

RELEASES = {"bullseye": ("3.9", "247"), "bookworm": ("3.11", "252"), "trixie": ("3.13", "257")}  # Python, systemd
VERSIONS = {"v2": ["cgroup2"], "hybrid": ["cgroup", "cgroup2"], "v1": ["cgroup"]}
HIERARCHIES = {"v2": "/sys/fs/cgroup", "hybrid": "/sys/fs/cgroup/unified", "v1": "/sys/fs/cgroup/devices"}


def python_of(site: Site) -> str:
    """The version of the host's Python, without its patch level."""
    return site.host.succeed("/usr/bin/python3", "-c", "import sys; print('{}.{}'.format(*sys.version_info))").strip()


def test_it_is_the_release_that_its_name_says(site: Site) -> None:
    codename = site.host.succeed("sh", "-c", ". /etc/os-release && echo $VERSION_CODENAME").strip()
    assert site.name == f"platforms-{codename}-{site.host.layout}"
    told = site.host.succeed("systemctl", "--version").split()
    assert (python_of(site), told[1]) == RELEASES[codename]


def test_its_cgroups_have_the_layout_that_its_name_says(site: Site) -> None:
    kinds = site.host.succeed("sh", "-c", "awk '$3 ~ /^cgroup/ {print $3}' /proc/mounts | sort -u").split()
    assert kinds == VERSIONS[site.host.layout]


def test_the_release_is_compiled_for_its_python_alone(site: Site) -> None:
    tag = f"cpython-{python_of(site).replace('.', '')}"
    compiled = site.host.succeed("find", "-L", CURRENT, "-name", "*.pyc").split()
    assert compiled
    assert [path for path in compiled if not path.endswith(f".{tag}.pyc")] == []


def test_a_task_executor_is_confined_by_the_version_of_its_layout(site: Site) -> None:
    """And gives all back when it stops, by the role's drop-in alone."""
    (template,) = site.units
    unit = template.replace("@", "@own")
    site.managers.write(template, user=site.user)
    try:
        executor = site.managers.restart(unit)
        asked = executor.call(SCRIPT, str(site.amount))
        assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
        _check_confined(site, executor)
        site.host.succeed("systemctl", "daemon-reload")
        _check_confined(site, executor)
        site.host.succeed("systemctl", "stop", unit)
        assert (records(site.host), confinements(site.host)) == ([], [])
    finally:
        site.managers.stop_all()


def _check_confined(site: Site, executor: TaskManager) -> None:
    check_in_force(executor, {0, 1})
    assert confinements(site.host) == [f"{HIERARCHIES[site.host.layout]}{executor.cgroup_now()}"]
