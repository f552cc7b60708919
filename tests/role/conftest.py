"""The collection is installed once a test run; each test class, or test outside of a class, has a fresh host."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.booted.engine import CannotBootError
from tests.booted.host import BootedHost
from tests.role.collection import install_collection
from tests.role.hosts import BOOKWORM, HostKind
from tests.role.playing import ControlNode


@pytest.fixture(scope="session")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the collection is installed; all processes of the test run share it."""
    own = tmp_path_factory.getbasetemp()
    return install_collection(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own)


@pytest.fixture(scope="session")
def control(collection: Path, tmp_path_factory: pytest.TempPathFactory) -> ControlNode:
    """What plays playbooks with it."""
    return ControlNode(tmp_path_factory.mktemp("control"), collection)


@pytest.fixture(scope="class")
def host(request: pytest.FixtureRequest) -> Iterator[BootedHost]:
    """A host of the kind that ``parametrize`` names, else bookworm on cgroup v2; skips where it can't be booted."""
    kind: HostKind = getattr(request, "param", BOOKWORM)
    try:
        booted = BootedHost(kind.layout, suite=kind.suite)
    except CannotBootError as error:
        pytest.skip(str(error))
    with booted:
        yield booted
