"""Many calls, in a row and at once, and calls that outlast their caller or their time."""

from __future__ import annotations

import time

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import OTHER, Lab
from tests.isolation.privileged_calls import (
    ASK,
    ONE_VIEW,
    SUDO,
    HeldLock,
    confinements,
    ended,
    held,
    opens,
    records,
    refused,
    unchanged,
    waiting_helper,
)

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

HEAD = "[flink-gpu-discovery]\n"


def test_other_amounts_and_resources_widen_nothing(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}max-gpus-per-owner = 2\nmax-gpus-per-uid = 3\nresources = gpu, tpu, npu\n")
    assert executor.call(SCRIPT, "1", "--isolate").out == "0\n"
    for amount in ("2", "3", "4", "9999"):
        for resource in ("gpu", "tpu", "npu", "other"):
            executor.call(SCRIPT, amount, "--isolate", "--resource", resource)
            assert len(records(host)) <= 2
            assert len(opens(executor)) == len(records(host))
    assert executor.call(SCRIPT, "1", "--isolate", "--resource", "tpu").out == "1\n"
    assert executor.call(SCRIPT, "1", "--isolate", "--resource", "npu").code == 77
    children = [executor.child() for _ in range(3)]
    assert [child.call(SCRIPT, "1", "--isolate", "--resource", "npu").code for child in children] == [77] * 3
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


def test_giving_back_and_asking_again_widens_nothing(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}max-gpus-per-uid = 2\n")
    other = host.executor(OTHER)
    assert other.call(SCRIPT, "1", "--isolate").out == "0\n"
    for _ in range(4):
        assert executor.call(*ASK).code == 0
        assert opens(executor) == "12"
        assert executor.call(SCRIPT, "deallocateAll", "--isolate").code == 0
        assert opens(executor) == ""
    assert (opens(other), held(host)) == ("0", {other.pid: "0"})


def test_many_calls_of_one_owner_at_once_are_one_grant(host: Lab, executor: Agent) -> None:
    calls = [executor.start(*ASK) for _ in range(30)]
    ends = [call.finish(30) for call in calls]
    assert {(done.code, done.out) for done in ends} <= {(0, "0,1\n"), (75, "")}
    assert (opens(executor), held(host), len(confinements(host))) == ("01", {executor.pid: "0,1"}, 1)


def test_many_calls_for_unlike_amounts_at_once_are_one_grant(host: Lab, executor: Agent) -> None:
    calls = [executor.start(SCRIPT, str(1 + number % 3), "--isolate") for number in range(12)]
    ends = [call.finish(30) for call in calls]
    assert {done.code for done in ends} <= {0, 64, 75}
    (answer,) = {done.out for done in ends if done.code == 0}
    (indexes,) = held(host).values()
    assert (answer, opens(executor)) == (f"{indexes}\n", indexes.replace(",", ""))


def test_grants_and_returns_at_once_leave_what_the_ledger_says(host: Lab, executor: Agent) -> None:
    calls = [executor.start(*((SCRIPT, "deallocateAll", "--isolate") if number % 2 else ASK)) for number in range(16)]
    assert {call.finish(30).code for call in calls} <= {0, 75}
    assert opens(executor) == ("01" if held(host) else "")


def test_many_executors_at_once_share_no_gpu(host: Lab) -> None:
    agents = [host.executor(uid) for uid in (7001, OTHER) for _ in range(4)]
    calls = [agent.start(SCRIPT, "1", "--isolate") for agent in agents]
    codes = [call.finish(30).code for call in calls]
    assert sorted(codes) == [0] * 4 + [69] * 4
    seen = sorted(opens(agent) for agent, code in zip(agents, codes, strict=True) if code == 0)
    assert seen == ["0", "1", "2", "3"]


def test_nothing_is_kept_for_a_caller_that_ended(host: Lab, executor: Agent) -> None:
    with HeldLock(host):
        for _ in range(3):
            executor.start(*ASK)
        waiting_helper(host)
        executor.kill()
    ended(host)
    unchanged(host)


def test_nothing_is_kept_for_a_caller_that_ends_at_once(host: Lab, executor: Agent) -> None:
    for _ in range(5):
        executor.call("/bin/sh", "-c", f"{' '.join(ASK)} & exit 0")
    ended(host)
    executor.call(SCRIPT, "reclaim", "--isolate")
    unchanged(host, executor)


def test_a_lock_that_somebody_holds_ends_the_call_in_time(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}deadline = 0.8\n")
    with HeldLock(host):
        begun = time.monotonic()
        done = executor.call(*ASK)
        assert 0.7 < time.monotonic() - begun < 1.3, done
    refused(host, executor, done, 75, "ledger.lock is still locked by pid")


def test_the_deadline_counts_from_the_start_of_what_flink_started(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}deadline = 2.5\n")
    with HeldLock(host):
        begun = time.monotonic()
        done = executor.call("/bin/sh", "-c", f"sleep 1; exec {' '.join(ASK)}")
        assert 2.2 < time.monotonic() - begun < 3, done
    refused(host, executor, done, 75, "ledger.lock is still locked by pid")
    begun = time.monotonic()
    done = executor.call("/bin/sh", "-c", f"sleep 2.6; exec {' '.join(SUDO)} allocate 1")
    assert time.monotonic() - begun < 3.2
    refused(host, executor, done, 75)
