"""The owner ends while the root program works for it, and its PID is somebody else's at once."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.isolation.agent import PYTHON, Agent
from tests.isolation.cgroup import Cgroup
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, OTHER, Lab
from tests.isolation.privileged_calls import (
    ASK,
    CARDS,
    HOME,
    ONE_VIEW,
    HeldLock,
    begin,
    confinements,
    ended,
    held,
    home,
    records,
    slowed,
    wait_for,
    waiting_helper,
)

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

# clone3(2) with set_tid; its number is the same everywhere. The child becomes the user.
_HEIR = """
import ctypes, os, struct, sys, time
pid = (ctypes.c_int * 1)(int(sys.argv[1]))
arguments = struct.pack("10Q", 0, 0, 0, 0, 17, 0, 0, 0, ctypes.addressof(pid), 1)
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(1000):
    made = libc.syscall(435, arguments, len(arguments))
    if made >= 0 or ctypes.get_errno() != 17: break
    time.sleep(0.001)
if made == 0:
    uid = int(sys.argv[2]); os.setresgid(uid, uid, uid); os.setresuid(uid, uid, uid)
    time.sleep(60)
print(made if made > 0 else -ctypes.get_errno(), flush=True)
os.waitpid(made, 0)
"""


@pytest.fixture
def host(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    home(lab)
    return lab


def replace(host: Lab, owner: Agent, uid: int = FLINK) -> int:
    """End the owner, and start another process under its PID."""
    cgroup = owner.cgroup
    owner.kill()
    return heir_of(host, owner.pid, cgroup, uid)


def heir_of(host: Lab, pid: int, cgroup: Cgroup | None, uid: int) -> int:
    """Start a process under this PID."""
    words = (PYTHON, "-IS", "-c", _HEIR, str(pid), str(uid))
    process = host.start(*words, cgroup=cgroup, output=subprocess.PIPE)
    assert process.stdout is not None
    made = int(process.stdout.readline())
    if made < 0:
        pytest.skip(f"no process can be given a PID here: {os.strerror(-made)}")
    assert made == pid
    return made


def said(host: Lab) -> tuple[str, str]:
    return host.path(f"{HOME}/out").read_text(encoding="utf-8"), host.path(f"{HOME}/err").read_text(encoding="utf-8")


def outside(pid: int) -> bool:
    return "flink-gpu-" not in Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii")


@pytest.mark.parametrize("uid", [FLINK, OTHER, 0])
@pytest.mark.parametrize("words", [ASK, (SCRIPT, "deallocateAll", "--isolate")])
def test_before_the_lock_was_had(host: Lab, executor: Agent, words: tuple[str, ...], uid: int) -> None:
    if words != ASK:
        executor.call(*ASK)
    before = records(host)
    with HeldLock(host):
        begin(executor, *words)
        waiting_helper(host)
        heir = replace(host, executor, uid)
    ended(host)
    assert outside(heir)
    assert records(host) == before
    out, err = said(host)
    assert (out, "ended" in err, err.count("\n")) == ("", True, 1), err


def test_between_the_check_and_the_move(host: Lab, executor: Agent) -> None:
    with HeldLock(host) as lock:
        begin(executor, *ASK)
        with slowed(waiting_helper(host), "?mkdir,?mkdirat"):
            lock.release()
            time.sleep(0.1)
            heir = replace(host, executor)
    ended(host)
    out, err = said(host)
    assert (out, "has ended meanwhile" in err, held(host)) == ("", True, {}), err
    assert outside(heir)
    assert confinements(host) == []


def test_of_a_descendant_that_was_to_be_moved(host: Lab, executor: Agent) -> None:
    """Another process has its PID by the time that its turn comes."""
    child = executor.child()
    with HeldLock(host) as lock:
        begin(executor, *ASK)
        with slowed(waiting_helper(host), "write", 700):
            lock.release()
            wait_for(lambda: confinements(host), "confinement")
            time.sleep(0.2)  # the family is listed, and its first process is being moved
            child.kill()
            heir = heir_of(host, child.pid, None, OTHER)
    ended(host)
    assert said(host) == ("0,1\n", "")
    assert outside(heir)


def test_its_heir_holds_nothing_of_its(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    heir = replace(host, executor)
    assert outside(heir)
    second = host.executor()
    assert second.call(SCRIPT, "3", "--isolate").code == 69
    assert second.call(SCRIPT, "reclaim", "--isolate").out.count("reclaimed GPU") == 2
    assert (second.call(SCRIPT, "3", "--isolate").out, held(host)) == ("0,1,2\n", {second.pid: "0,1,2"})
