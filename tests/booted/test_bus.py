"""A TaskManager is confined only where the system bus keeps its user from asking systemd to move processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flink_gpu_discovery.isolation import bus
from tests.booted.host import BootedHost
from tests.booted.installation import POLICY, POLICY_TEXT
from tests.booted.taskmanager import TaskManager, TaskManagers, confinements, records

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

LIMIT = 256  # dbus-daemon's max_connections_per_user, for the system bus
HELLO = bus._message(1, "/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus", "Hello")
CROWD = f"""\
import socket
crowd = []
for _ in range({LIMIT}):
    crowd.append(socket.socket(socket.AF_UNIX))
    crowd[-1].connect("/run/dbus/system_bus_socket")
    crowd[-1].sendall(b"\\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\\r\\n")
    assert crowd[-1].recv(200).startswith(b"OK ")
    crowd[-1].sendall(b"BEGIN\\r\\n" + {HELLO!r})
    heard = b""
    while b"NameAcquired" not in heard:
        heard += crowd[-1].recv(1000)
result = len(crowd)
"""


def refused(manager: TaskManager) -> str:
    """Why; nothing is recorded, and it is where it was."""
    asked = manager.ask()
    assert (asked.code, asked.out) == (71, "")
    assert (records(manager.host), confinements(manager.host)) == ([], [])
    assert manager.cgroup_now() == f"/system.slice/{manager.unit}"
    return asked.err


def test_without_a_policy_the_call_is_refused(managers: TaskManagers, open_bus: Callable[[], None]) -> None:
    open_bus()
    assert "AttachProcessesToUnit" in refused(managers.start())


@pytest.mark.parametrize("lacking", ["Manager", "Service", "Scope"])
def test_a_policy_that_lacks_a_method_is_refused_by_its_name(
    host: BootedHost, managers: TaskManagers, open_bus: Callable[[], None], lacking: str
) -> None:
    open_bus()
    host.write(POLICY, POLICY_TEXT.replace(f"systemd1.{lacking}", "systemd1.Nothing"))
    host.reload_bus()
    assert f"{lacking}.AttachProcesses" in refused(managers.start())


def test_a_policy_that_the_bus_can_not_read_counts_for_nothing(
    host: BootedHost, managers: TaskManagers, open_bus: Callable[[], None]
) -> None:
    open_bus()
    host.write(POLICY, POLICY_TEXT.replace("</policy>", ""))
    host.run("systemctl", "reload", "dbus")
    assert "AttachProcessesToUnit" in refused(managers.start())


def test_a_caller_that_has_used_up_its_connections_is_refused(
    managers: TaskManagers, open_bus: Callable[[], None]
) -> None:
    """The bus answers no more then, so what it would let pass can't be told."""
    open_bus()
    manager = managers.start()
    assert manager.evaluate(CROWD) == LIMIT
    assert "systemd's manager" in refused(manager)


def test_a_unit_that_does_not_see_the_bus_is_refused_like_others(
    managers: TaskManagers, open_bus: Callable[[], None]
) -> None:
    """Other processes of its user see it, and could have this one moved."""
    open_bus()
    assert "AttachProcessesToUnit" in refused(managers.start("taskmanager.service", "InaccessiblePaths=/run/dbus"))
