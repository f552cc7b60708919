"""The hosts of the scenario that is played; without one nothing here is collected."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import testinfra  # type: ignore[import-untyped]

from tests.booted.engine import Layout
from tests.booted.host import ContainerHost
from tests.booted.taskmanager import TaskManagers

HOSTS: list[dict[str, Any]] = json.loads(os.environ.get("MOLECULE_HOSTS", "[]"))
ENGINE = os.environ.get("MOLECULE_ENGINE", "podman")

collect_ignore_glob = [] if HOSTS else ["test_*.py"]


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


@pytest.fixture(scope="session", params=HOSTS, ids=lambda about: about["name"])
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Each host of the scenario in turn."""
    about: dict[str, Any] = dict(request.param)
    container: str = about.pop("container")
    layout: Layout = about.pop("layout")
    host = ContainerHost(container, layout, ENGINE, os.environ)
    host.attach()
    managers = TaskManagers(host, plain=True)
    inspected = testinfra.get_host(f"{ENGINE}://{container}")
    try:
        yield Site(host, managers, inspected, **{**about, "amount": int(about["amount"])})
    finally:
        managers.close()
        host.detach()
