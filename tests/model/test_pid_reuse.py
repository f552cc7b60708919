"""A PID that is used again, for real: in a PID namespace whose next PID the test chooses."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.namespace import CannotUnshareError, Namespace, unshare_words
from tests.model.values import Owner
from tests.support.script import ROOT

PID, OTHER_PID = 300, 400


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    try:
        unshare_words()
    except CannotUnshareError as error:
        pytest.skip(str(error))
    with Namespace() as opened:
        yield opened


@pytest.fixture
def options(tmp_path: Path) -> tuple[str, ...]:
    return "--ledger", str(tmp_path / "state" / "ledger"), "--backend", "simulated:4"


def owners(namespace: Namespace, options: tuple[str, ...]) -> list[tuple[str, int, int, str]]:
    """Index, PID, start time and liveness of each record."""
    result = namespace.operate("status", "--json", *options)
    assert result.code == 0, result.err
    found = [(record["index"], record["owner"]) for record in json.loads(result.out)["records"]]
    return [(index, owner["pid"], owner["start_time"], owner["liveness"]) for index, owner in found]


def lines(owner: Owner, liveness: str, *indexes: str) -> list[tuple[str, int, int, str]]:
    return [(index, owner.pid, owner.start_time, liveness) for index in indexes]


def die(namespace: Namespace, owner: Owner) -> None:
    namespace.kill(owner.pid)
    namespace.reap(owner.pid)


def test_a_process_with_the_pid_of_a_dead_owner_inherits_nothing(
    namespace: Namespace, options: tuple[str, ...]
) -> None:
    dead = namespace.start(PID)
    assert namespace.call(PID, "3", *options).out == "0,1,2\n"
    assert owners(namespace, options) == lines(dead, "alive", "0", "1", "2")
    die(namespace, dead)
    heir = namespace.start(PID)
    assert (heir.pid, heir.start_time > dead.start_time) == (dead.pid, True)
    assert owners(namespace, options) == lines(dead, "dead", "0", "1", "2")

    refused = namespace.call(PID, "3", *options)  # the very call that the dead owner could have repeated
    assert (refused.code, refused.out) == (69, "")
    assert namespace.call(PID, "1", *options).out == "3\n"
    assert namespace.call(PID, "deallocateAll", *options).code == 0
    assert owners(namespace, options) == lines(dead, "dead", "0", "1", "2")


def test_a_process_with_the_pid_of_a_dead_owner_takes_its_gpus_over_on_request(
    namespace: Namespace, options: tuple[str, ...]
) -> None:
    dead = namespace.start(PID)
    assert namespace.call(PID, "4", *options).out == "0,1,2,3\n"
    die(namespace, dead)
    heir = namespace.start(PID)
    taken = namespace.call(PID, "3", *options, "--check-dead")
    assert (taken.code, taken.out) == (0, "0,1,2\n")
    assert f"taken over from pid {PID} ({dead.command}), which has ended" in taken.err
    assert owners(namespace, options) == lines(heir, "alive", "0", "1", "2") + lines(dead, "dead", "3")
    assert "reclaimed GPU 3 " in namespace.operate("reclaim", *options).out
    assert owners(namespace, options) == lines(heir, "alive", "0", "1", "2")


def test_others_take_over_from_a_dead_owner_whose_pid_is_in_use_again(
    namespace: Namespace, options: tuple[str, ...]
) -> None:
    dead = namespace.start(PID)
    assert namespace.call(PID, "4", *options).out == "0,1,2,3\n"
    die(namespace, dead)
    namespace.start(PID)
    other = namespace.start(OTHER_PID)
    assert namespace.call(OTHER_PID, "4", *options).code == 69
    assert namespace.call(OTHER_PID, "4", *options, "--check-dead").out == "0,1,2,3\n"
    assert namespace.call(PID, "1", *options, "--check-dead").code == 69
    assert owners(namespace, options) == lines(other, "alive", "0", "1", "2", "3")


def test_nothing_lives_on_when_a_test_ends_or_is_killed(namespace: Namespace) -> None:
    body = (
        "import sys, time\n"
        "from tests.model.namespace import Namespace\n"
        "opened = Namespace()\n"
        f"opened.start({PID})\n"
        "print(opened.pid_namespace, flush=True)\n"
        "time.sleep(60)\n"
    )
    namespace.start(PID)
    assert len(members(namespace.pid_namespace)) == 2
    namespace.close()
    assert members(namespace.pid_namespace) == []
    with subprocess.Popen([sys.executable, "-c", body], cwd=ROOT, stdout=subprocess.PIPE) as test:
        assert test.stdout is not None
        inode = int(test.stdout.readline())
        assert len(members(inode)) == 2
        test.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while members(inode) and time.monotonic() < end:
        time.sleep(0.01)
    assert members(inode) == []


def members(pid_namespace: int) -> list[str]:
    """The processes of a namespace, as they are numbered outside."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                inode = (entry / "ns" / "pid").stat().st_ino
            except OSError:
                continue  # it has just ended, or is a kernel's own
            found += [entry.name] if inode == pid_namespace else []
    return found
