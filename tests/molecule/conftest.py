"""The hosts of the scenario that is played; without one nothing here is collected."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Generator, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
import testinfra  # type: ignore[import-untyped]

from tests.booted.engine import Layout
from tests.booted.host import ContainerHost
from tests.booted.taskmanager import TaskManagers
from tests.support.script import ROOT

HOSTS: list[dict[str, Any]] = json.loads(os.environ.get("MOLECULE_HOSTS", "[]"))
_shown: list[str] = []
ENGINE = os.environ.get("MOLECULE_ENGINE", "podman")

collect_ignore_glob = [] if "MOLECULE_HOSTS" in os.environ else ["test_*.py"]


_DIAGNOSIS_SECONDS = 60.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show with the first failure how the hosts are, before fixtures tidy up."""
    report = yield
    if report.failed and call.when != "teardown" and not _shown:
        shown = subprocess.run(
            [str(ROOT / "molecule/shared/diagnose.sh")],
            capture_output=True,
            text=True,
            timeout=_DIAGNOSIS_SECONDS,
            check=False,
        )
        _shown.append(shown.stdout + shown.stderr)
        report.sections.append(("the hosts", _shown[0]))
    return report


class Site(NamedTuple):
    """A host that is up, what the role was told about it, and Testinfra's view of it."""

    host: ContainerHost
    managers: TaskManagers
    inspected: Any
    name: str
    user: str
    isolation: str
    amount: int
    units: list[str]


@pytest.fixture(scope="session")
def sites() -> Iterator[list[Site]]:
    """All hosts of the scenario."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(_attached(about)) for about in HOSTS]


@pytest.fixture(scope="session", params=range(len(HOSTS)), ids=lambda index: HOSTS[index]["name"])
def site(request: pytest.FixtureRequest, sites: list[Site]) -> Site:
    """Each of them in turn."""
    index: int = request.param
    return sites[index]


@contextlib.contextmanager
def _attached(about: Mapping[str, Any]) -> Iterator[Site]:
    told = {key: value for key, value in about.items() if key not in ("container", "layout")}
    layout: Layout = about["layout"]
    host = ContainerHost(about["container"], layout, ENGINE, os.environ)
    host.attach()
    managers = TaskManagers(host, plain=True)
    try:
        yield Site(
            host, managers, testinfra.get_host(f"{ENGINE}://{host.name}"), **{**told, "amount": int(told["amount"])}
        )
    finally:
        managers.close()
        host.detach()
