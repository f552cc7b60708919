"""One host a layout, shared by all tests; the units that a test starts are stopped after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.booted.engine import LAYOUTS, CannotBootError
from tests.booted.host import BootedHost
from tests.booted.installation import POLICY, POLICY_TEXT
from tests.booted.taskmanager import TaskManager, TaskManagers, confinements, records


@pytest.fixture(scope="session", params=LAYOUTS)
def installed(request: pytest.FixtureRequest) -> Iterator[tuple[BootedHost, TaskManagers]]:
    """A host of each layout in turn, with the program installed; skips where none can be booted."""
    try:
        host = BootedHost(request.param)
    except CannotBootError as error:
        pytest.skip(str(error))
    with host:
        host.install()
        managers = TaskManagers(host)
        yield host, managers
        managers.close()


@pytest.fixture
def host(installed: tuple[BootedHost, TaskManagers]) -> BootedHost:
    """The host, on which no unit of an earlier test runs."""
    return installed[0]


@pytest.fixture
def managers(installed: tuple[BootedHost, TaskManagers]) -> Iterator[TaskManagers]:
    """What starts TaskManagers; afterwards none runs, and nothing is left of any."""
    yield installed[1]
    installed[1].stop_all()
    assert records(installed[0]) == []
    assert confinements(installed[0]) == []


@pytest.fixture
def confined(managers: TaskManagers) -> TaskManager:
    """A TaskManager in a plain unit, that has asked for two of the four GPUs."""
    manager = managers.start()
    asked = manager.ask()
    assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
    return manager


@pytest.fixture
def open_bus(host: BootedHost) -> Iterator[Callable[[], None]]:
    """``open_bus()``: the system bus has no policy for the user any more, as distributions have it, until the end."""

    def open_it() -> None:
        host.succeed("rm", POLICY)
        host.reload_bus()

    yield open_it
    host.write(POLICY, POLICY_TEXT)
    host.reload_bus()
