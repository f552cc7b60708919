"""The bus client against a real dbus-daemon, where nobody is systemd's manager, or one that doesn't answer."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flink_gpu_discovery.isolation import bus
from tests.support.paths import reachable

DENY = (
    '<deny send_destination="org.freedesktop.systemd1" send_interface="org.freedesktop.systemd1.{}" send_member="{}"/>'
)
ALL_DENIED = [DENY.format("Manager", "AttachProcessesToUnit")]
ALL_DENIED += [DENY.format(interface, "AttachProcesses") for interface in ("Service", "Scope")]

Start = Callable[[list[str]], str]

pytestmark = pytest.mark.skipif(shutil.which("dbus-daemon") is None, reason="dbus-daemon is not installed")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a bus with these rules of policy; returns its socket."""
    running: list[subprocess.Popen[str]] = []

    def run(rules: list[str]) -> str:
        path = f"{reachable(tmp_path)}/bus"
        (tmp_path / "bus.conf").write_text(
            f"<busconfig><type>system</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth>"
            '<policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/>'
            '<allow receive_type="error"/><allow receive_type="method_return"/><allow receive_type="method_call"/>'
            f'<allow receive_type="signal"/>{"".join(rules)}</policy></busconfig>'
        )
        words = ["dbus-daemon", "--nofork", "--print-address", f"--config-file={tmp_path}/bus.conf"]
        running.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout is not None
        assert running[-1].stdout.readline().startswith("unix:path=")
        return path

    yield run
    for process in running:
        with process:
            process.kill()


def test_where_no_bus_is_nobody_moves_anything(tmp_path: Path) -> None:
    assert bus.ways_out(f"{tmp_path}/none", os.geteuid()) == ()


def test_where_the_bus_has_no_manager_nobody_moves_anything(start: Start) -> None:
    assert bus.ways_out(start([]), os.geteuid()) == ()


def test_what_the_policy_denies_is_no_way_out(start: Start) -> None:
    assert bus.ways_out(start(ALL_DENIED), os.geteuid()) == ()


def test_a_manager_that_does_not_answer_is_no_proof(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bus, "_SECONDS", 0.3)
    path = start([])
    with Manager(path), pytest.raises(bus.BusError, match="timed out"):
        bus.ways_out(path, os.geteuid())


def test_a_manager_behind_a_policy_is_not_asked(start: Start) -> None:
    path = start(ALL_DENIED)
    with Manager(path):
        assert bus.ways_out(path, os.geteuid()) == ()


@pytest.mark.parametrize("open_", [0, 1, 2])
def test_each_method_must_be_denied(start: Start, monkeypatch: pytest.MonkeyPatch, open_: int) -> None:
    monkeypatch.setattr(bus, "_SECONDS", 0.3)
    path = start([rule for place, rule in enumerate(ALL_DENIED) if place != open_])
    with Manager(path), pytest.raises(bus.BusError, match="timed out"):
        bus.ways_out(path, os.geteuid())


def test_an_answer_that_is_no_message_is_no_proof(tmp_path: Path) -> None:
    path = f"{tmp_path}/bus"
    code = (
        "import socket, sys\n"
        "listener = socket.socket(socket.AF_UNIX); listener.bind(sys.argv[1]); listener.listen(); print(flush=True)\n"
        "peer, _ = listener.accept(); peer.recv(100); peer.send(b'OK 1\\r\\n'); peer.recv(4096)\n"
        "peer.send(b'l\\x02' + bytes(2) + b'\\xff' * 12 + bytes(100)); peer.recv(100)\n"
    )
    with subprocess.Popen(["python3", "-c", code, path], stdout=subprocess.PIPE, text=True) as false_bus:
        assert false_bus.stdout is not None
        false_bus.stdout.readline()
        with pytest.raises(bus.BusError, match="too large"):
            bus.ways_out(path, os.geteuid())


class Manager:
    """A connection that owns systemd's name, and keeps silent."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            ["python3", "-c", _OWNER, path, str(os.geteuid())],
            env={**os.environ, "PYTHONPATH": str(Path(bus.__file__).parents[2])},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> Manager:
        return self

    def __exit__(self, *error: object) -> None:
        with self._process:
            self._process.kill()


_OWNER = """
import socket, struct, sys, time
from flink_gpu_discovery.isolation import bus
me = socket.socket(socket.AF_UNIX)
me.connect(sys.argv[1])
me.sendall(b"\\0AUTH EXTERNAL " + sys.argv[2].encode().hex().encode() + b"\\r\\n")
me.recv(100)
driver = ("/org/freedesktop/DBus", "org.freedesktop.DBus", "org.freedesktop.DBus")
body = bus._padded(bus._text("org.freedesktop.systemd1"), 4) + struct.pack("<I", 4)
me.sendall(b"BEGIN\\r\\n" + bus._message(1, *driver, "Hello") + bus._message(2, *driver, "RequestName", "su", body))
answers = {}
while 2 not in answers:
    answers.update(bus._answer(me))
assert answers == {1: "", 2: ""}, answers
print("ready", flush=True)
time.sleep(60)
"""
