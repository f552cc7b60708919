"""Signals that a caller sends by way of sudo, and the end of sudo itself, while the root program works."""

from __future__ import annotations

import signal
import subprocess
import time

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import Lab
from tests.isolation.privileged_calls import (
    ASK,
    CARDS,
    ONE_VIEW,
    HeldLock,
    ended,
    held,
    helpers,
    opens,
    records,
    refused,
    slowed,
    unchanged,
    wait_for,
    waiting_helper,
)
from tests.standins.nvml.faults import sleep

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

# What sudo relays, and what a terminal or a kernel may send besides.
RELAYED = ("USR1", "USR2", "INT", "QUIT", "TSTP", "WINCH")
IGNORED = (
    *RELAYED,
    "PIPE",
    "CONT",
    "TTIN",
    "TTOU",
    "IO",
    "PROF",
    "VTALRM",
    "XCPU",
    "XFSZ",
    "URG",
    "TRAP",
    "SYS",
    "ABRT",
)
MAKE, FORK, RENAME = "?mkdir,?mkdirat", "?fork,?clone,?vfork,?clone3", "?rename,?renameat,?renameat2"
MEANT = ("HUP", "TERM")


def send(executor: Agent, pid: int, name: str) -> None:
    """As the caller."""
    executor.evaluate(f"os.kill({pid}, {int(signal.Signals[f'SIG{name}'])})")


def test_others_than_hup_and_term_are_ignored(host: Lab, executor: Agent) -> None:
    with HeldLock(host):
        call = executor.start(*ASK)
        helper = waiting_helper(host)
        for name in RELAYED:
            send(executor, call.pid, name)
        for name in IGNORED:
            subprocess.run(["kill", f"-{name}", str(helper)], check=True)
        for number in range(signal.SIGRTMIN, signal.SIGRTMAX + 1):
            subprocess.run(["kill", f"-{number}", str(helper)], check=True)
        time.sleep(0.1)
        assert helpers(host) == [helper]
        send(executor, call.pid, "CONT")
    done = call.finish()
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


def test_an_alarm_before_its_time_is_ignored(host: Lab, executor: Agent) -> None:
    with HeldLock(host):
        call = executor.start(*ASK)
        helper = waiting_helper(host)
        subprocess.run(["kill", "-ALRM", str(helper)], check=True)
        time.sleep(0.1)
        assert helpers(host) == [helper]
    assert call.finish().out == "0,1\n"


def test_an_alarm_to_sudo_is_the_end_of_its_patience(host: Lab, executor: Agent) -> None:
    """Sudo takes it for its own time limit, and ends the program in order."""
    with HeldLock(host):
        call = executor.start(*ASK)
        waiting_helper(host)
        send(executor, call.pid, "ALRM")
        assert call.finish().out == ""
    ended(host, 2)
    unchanged(host, executor)


def test_the_caller_can_not_signal_it_directly(host: Lab, executor: Agent) -> None:
    with HeldLock(host):
        call = executor.start(*ASK)
        helper = waiting_helper(host)
        for number in (1, 9, 15, 19):
            source = f"try: os.kill({helper}, {number})\nexcept OSError as error: result = error.strerror"
            assert executor.evaluate(source) == "Operation not permitted"
    assert call.finish().out == "0,1\n"


@pytest.mark.parametrize("name", MEANT)
def test_hup_and_term_end_a_call_that_waits_for_the_lock(host: Lab, executor: Agent, name: str) -> None:
    with HeldLock(host):
        call = executor.start(*ASK)
        waiting_helper(host)
        begun = time.monotonic()
        send(executor, call.pid, name)
        done = call.finish()
        assert time.monotonic() - begun < 1
    refused(host, executor, done, 75, "signal")


@pytest.mark.parametrize("name", MEANT)
def test_hup_and_term_end_a_call_that_waits_for_the_driver(host: Lab, executor: Agent, name: str) -> None:
    host.nvidia(*CARDS, faults=(sleep("nvmlDeviceGetCount_v2", 5_000),))
    call = executor.start(*ASK)
    wait_for(lambda: helpers(host), "helper")
    time.sleep(0.3)
    begun = time.monotonic()
    send(executor, call.pid, name)
    done = call.finish()
    assert time.monotonic() - begun < 1
    refused(host, executor, done, 75, "signal")
    wait_for(lambda: not helpers(host), "end of the helper", 1)


@pytest.mark.parametrize("calls", [MAKE, "bpf", FORK, RENAME])
@pytest.mark.parametrize("name", MEANT)
def test_hup_and_term_undo_a_confinement(host: Lab, executor: Agent, name: str, calls: str) -> None:
    before = executor.membership()
    with HeldLock(host) as lock:
        call = executor.start(*ASK)
        with slowed(waiting_helper(host), calls):
            lock.release()
            time.sleep(0.15)
            send(executor, call.pid, name)
            done = call.finish()
    refused(host, executor, done, 75, "signal")
    assert executor.membership() == before


@pytest.mark.parametrize("calls", ["bpf", FORK, RENAME])
def test_a_give_back_that_is_ended_leaves_what_the_ledger_says(host: Lab, executor: Agent, calls: str) -> None:
    executor.call(*ASK)
    with HeldLock(host) as lock:
        call = executor.start(SCRIPT, "deallocateAll", "--isolate")
        with slowed(waiting_helper(host), calls):
            lock.release()
            time.sleep(0.15)
            send(executor, call.pid, "TERM")
            done = call.finish()
    assert (done.code, opens(executor)) in ((75, "01"), (0, "")), done
    assert held(host) == ({executor.pid: "0,1"} if done.code else {})


def test_the_end_of_sudo_ends_a_call_that_waits(host: Lab, executor: Agent) -> None:
    with HeldLock(host):
        call = executor.start(*ASK)
        waiting_helper(host)
        send(executor, call.pid, "KILL")
    ended(host, 2)
    unchanged(host, executor)


def test_without_sudo_the_deadline_still_holds(host: Lab, executor: Agent) -> None:
    host.settings("[flink-gpu-discovery]\ndeadline = 0.6\n")
    with HeldLock(host):
        call = executor.start(*ASK)
        waiting_helper(host)
        send(executor, call.pid, "KILL")
        ended(host, 1.5)
    unchanged(host, executor)


@pytest.mark.parametrize("calls", [MAKE, "bpf", FORK])
def test_the_end_of_sudo_undoes_a_confinement(host: Lab, executor: Agent, calls: str) -> None:
    before = executor.membership()
    with HeldLock(host) as lock:
        call = executor.start(*ASK)
        with slowed(waiting_helper(host), calls):
            lock.release()
            time.sleep(0.1)
            send(executor, call.pid, "KILL")
    ended(host)
    unchanged(host, executor)
    assert executor.membership() == before


def test_a_sudo_that_is_stopped_holds_nobody_up(host: Lab, executor: Agent) -> None:
    with HeldLock(host):
        call = executor.start(*ASK)
        waiting_helper(host)
        send(executor, call.pid, "STOP")
    wait_for(lambda: held(host) if records(host) and records(host)[0]["state"] == "held" else {}, "record")
    second = host.executor()
    assert second.call(*ASK).out == "0,1\n"
    send(executor, call.pid, "CONT")
    assert call.finish().out == "0,1\n"
    assert (opens(executor), opens(second)) == ("01", "23")
