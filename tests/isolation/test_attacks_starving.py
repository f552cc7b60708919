"""What a process inherits from its caller, and what a cgroup does to it: none of it may starve the root program."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.isolation.agent import PYTHON, Agent
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.lab import OTHER, Lab
from tests.isolation.privileged_calls import (
    ASK,
    HOME,
    ONE_VIEW,
    HeldLock,
    ended,
    held,
    helpers,
    home,
    links,
    opens,
    slowed,
    unchanged,
    waiting_helper,
)

_SLACK = 2 * 10**9  # nanoseconds
# Sends SIGSTOP to the first child of the root program that lets it.
_HUNT = """
def hunt(children):
    while True:
        try:
            for child in open(children).read().split():
                os.kill(int(child), 19)
                return
        except PermissionError: pass
        except OSError: return
"""

one_view = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)


def fields_of(pid: int) -> list[str]:
    """Those of /proc/PID/stat from the third one on."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()


@one_view
def test_nothing_inherited_slows_it_down(host: Lab, executor: Agent) -> None:
    executor.write("/proc/self/oom_score_adj", "900")
    slow = ("/usr/bin/nice", "-n", "19", "/usr/bin/chrt", "--idle", "0", "/usr/bin/taskset", "-c", "0")
    with HeldLock(host):
        call = executor.start(*slow, *ASK)
        helper = waiting_helper(host)
        fields = fields_of(helper)
        nice, policy = fields[16], fields[38]
        processors = len(os.sched_getaffinity(helper))
        score = Path(f"/proc/{helper}/oom_score_adj").read_text(encoding="ascii").strip()
    assert (nice, policy, processors, score) == ("0", "0", len(os.sched_getaffinity(0)), "0")
    assert call.finish().out == "0,1\n"


@one_view
def test_a_caller_s_slack_for_timers_is_not_its_own(host: Lab, executor: Agent) -> None:
    """With it each of its short pauses, also those with the lock held, could take as long as the caller likes."""
    source = f"import ctypes, os; ctypes.CDLL(None).prctl(29, ctypes.c_ulong({_SLACK})); os.execv({ASK[0]!r}, {ASK!r})"
    with HeldLock(host):
        call = executor.start(PYTHON, "-IS", "-c", source)
        helper = waiting_helper(host)
        slack = int(Path(f"/proc/{helper}/timerslack_ns").read_text(encoding="ascii"))
    assert slack <= 50_000
    assert call.finish().out == "0,1\n"


@one_view
def test_it_works_in_root_s_folder_with_nothing_of_the_caller_s_open(host: Lab, executor: Agent) -> None:
    home(host)
    executor.evaluate(
        f"import subprocess\nos.mkdir('{HOME}/gone'); os.chdir('{HOME}/gone'); os.rmdir('{HOME}/gone')\n"
        f"files = [os.open('{HOME}', os.O_RDONLY) for _ in range(300)]\n"
        "[os.set_inheritable(file, True) for file in files]\nresult = 0"
    )
    with HeldLock(host):
        executor.evaluate(
            f"process = subprocess.Popen({list(ASK)!r}, pass_fds=files, stdout=subprocess.PIPE)\nresult = process.pid"
        )
        helper = waiting_helper(host)
        assert Path(f"/proc/{helper}/cwd").readlink() == Path("/")
        assert not [link for link in links(helper) if link.startswith(HOME)]
    assert executor.evaluate("process.communicate(timeout=10)[0].decode()") == "0,1\n"


@one_view
@pytest.mark.parametrize(
    "limit",
    [
        *("--nofile=8:8", "--nofile=64:64", "--nofile=8:", "--fsize=0:0", "--fsize=200:200", "--fsize=0:"),
        *("--cpu=1:1", "--nproc=1:1", "--memlock=0:0", "--as=100000000:100000000", "--as=30000000:30000000"),
        *("--as=16000000:16000000", "--data=1000000:1000000", "--stack=200000:200000", "--stack=65536:65536"),
        *("--core=unlimited:", "--sigpending=0:0", "--msgqueue=0:0", "--rttime=1:1", "--locks=0:0"),
    ],
)
def test_a_tiny_limit_breaks_nothing_in_two(host: Lab, executor: Agent, limit: str) -> None:
    """It works, or it changes nothing; and everybody else is served."""
    done = executor.call("/usr/bin/prlimit", limit, *ASK)
    if done.code == 0:
        assert (done.out, opens(executor), held(host)) == ("0,1\n", "01", {executor.pid: "0,1"})
    else:
        assert done.out == ""
        unchanged(host, executor)
    second = host.executor(OTHER)
    assert second.call(*ASK).out == "0,1\n"
    assert opens(second) == ("23" if done.code == 0 else "01")


@one_view
def test_limits_are_lifted_as_far_as_the_kernel_lets_it(host: Lab, executor: Agent) -> None:
    lowered = ("--nofile=64:", "--fsize=100000:", "--cpu=100:", "--as=500000000:", "--memlock=0:", "--nproc=500:")
    with HeldLock(host):
        call = executor.start("/usr/bin/prlimit", *lowered, *ASK)
        helper = waiting_helper(host)
        for line in Path(f"/proc/{helper}/limits").read_text(encoding="ascii").splitlines()[1:]:
            name, (soft, hard) = line[:26].strip(), line[26:68].split()
            assert soft == hard or name == "Max core file size", line
    assert call.finish().out == "0,1\n"


def outside(pid: int, cgroup: str) -> bool:
    return cgroup not in Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii")


def test_it_is_in_no_cgroup_of_the_caller_s(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    with HeldLock(host):
        call = executor.start(*ASK)
        assert outside(waiting_helper(host), host.name)
    assert call.finish().out == "0,1\n"


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_freezing_the_caller_s_cgroup_does_not_freeze_it(host: Lab, executor: Agent) -> None:
    host.settings("[flink-gpu-discovery]\ndeadline = 1\n")
    assert executor.cgroup is not None
    assert executor.cgroup.v2 is not None
    freeze = executor.cgroup.v2 / "cgroup.freeze"
    with HeldLock(host):
        call = executor.start(*ASK)
        waiting_helper(host)
        freeze.write_text("1", encoding="ascii")
        ended(host, 2)
        freeze.write_text("0", encoding="ascii")
    assert call.finish().code == 75
    unchanged(host, executor)


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_killing_the_caller_s_cgroup_does_not_kill_it(host: Lab, executor: Agent) -> None:
    assert executor.cgroup is not None
    assert executor.cgroup.v2 is not None
    with HeldLock(host):
        executor.start(*ASK)
        helper = waiting_helper(host)
        (executor.cgroup.v2 / "cgroup.kill").write_text("1", encoding="ascii")
        time.sleep(0.1)
        assert helpers(host) == [helper]
    ended(host)
    unchanged(host)


@one_view
def test_the_v1_freezer_does_not_freeze_it(host: Lab, executor: Agent) -> None:
    freezer = Path("/sys/fs/cgroup/freezer")
    if not (freezer / "cgroup.procs").exists():
        pytest.skip("no v1 freezer is mounted")
    host.settings("[flink-gpu-discovery]\ndeadline = 1\n")
    cgroup = freezer / host.name
    cgroup.mkdir()
    try:
        (cgroup / "cgroup.procs").write_text(str(executor.pid), encoding="ascii")
        with HeldLock(host):
            call = executor.start(*ASK)
            assert outside(waiting_helper(host), host.name)
            (cgroup / "freezer.state").write_text("FROZEN", encoding="ascii")
            ended(host, 2)
            (cgroup / "freezer.state").write_text("THAWED", encoding="ascii")
        assert call.finish().code == 75
        unchanged(host, executor)
    finally:
        (cgroup / "freezer.state").write_text("THAWED", encoding="ascii")
        executor.kill()
        for pid in (cgroup / "cgroup.procs").read_text(encoding="ascii").split():
            (freezer / "cgroup.procs").write_text(pid, encoding="ascii")
        cgroup.rmdir()


@one_view
def test_stopping_its_proof_does_not_keep_the_lock(host: Lab, executor: Agent) -> None:
    """The proof has the owner's effective uid alone, and so gets no signals from it."""
    attacker = host.executor()
    with HeldLock(host) as lock:
        call = executor.start(*ASK)
        helper = waiting_helper(host)
        children = f"/proc/{helper}/task/{helper}/children"
        attacker.evaluate(f"{_HUNT}threading.Thread(target=hunt, args=({children!r},), daemon=True).start()")
        with slowed(helper, "?access,?faccessat,?faccessat2", 10):
            lock.release()
            begun = time.monotonic()
            done = call.finish()
    assert (done.code, done.out) == (0, "0,1\n")
    assert time.monotonic() - begun < 2
