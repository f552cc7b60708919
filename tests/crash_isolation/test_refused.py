"""Errors from every system call on the cgroups, of bpf(2) and on the ledger, one at a time: all or nothing.

What was begun is undone at once, without a ``reclaim``. Each call fails with one error of the list, in turn;
``CRASH_SWEEP=full`` lets each fail with all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import partial

import pytest

from tests.crash.strace import Call
from tests.crash_isolation.conftest import Notes
from tests.crash_isolation.scenarios import SCENARIOS, Scenario
from tests.crash_isolation.stage import Stage
from tests.crash_isolation.strikes import Strike, changes
from tests.crash_isolation.verdict import Judge, tried_again

pytestmark = pytest.mark.timeout(600)
_FULL = os.environ.get("CRASH_SWEEP") == "full"
_ERRORS = ("EPERM", "EBUSY", "ENOSPC", "EAGAIN", "ENODEV", "EINTR")
_ON = ("bpf(", "clone(", "pipe2(", "/run/flink-gpu-discovery/root", "/sys/fs/cgroup")
_WHETHER_THERE = 'flink-gpu-N-N", 0x'  # stat(2) of an owner's cgroup
_OF_THE_DEAD = "/dead/"
_STEP = 1 if _FULL else 16
# They change nothing, and a program that looks at errors of them would be none the wiser.
_HARMLESS = ("close", "ioctl", "lseek")


def test_any_call_on_cgroups_and_ledger_may_fail(stage: Stage, judge: Judge, notes: Notes) -> None:
    def trial(strike: Strike) -> list[str]:
        result, seen, missed = stage.suffer(strike)
        return [missed] if missed else judge.of_an_error(strike, result, seen)

    for strike in _faults(stage.scenario, stage.calls):
        notes.note(stage.tell(strike), tried_again(partial(trial, strike)))
    notes.tell()


def _faults(scenario: Scenario, calls: Iterable[Call]) -> Iterable[Strike]:
    on_them = [call for call in calls if any(part in call.text for part in _ON) and call.name not in _HARMLESS]
    chosen = [call for call in on_them if changes(call) or _WHETHER_THERE in call.text]
    # What can't be told to be unused is not taken over, so then others are.
    skipped = None if "reclaim" in scenario.words else _OF_THE_DEAD
    others = [call for call in on_them if call not in chosen and not (skipped and skipped in call.text)]
    chosen += others[SCENARIOS.index(scenario) :: _STEP]
    for place, call in enumerate(chosen):
        errors = _ERRORS if _FULL else (_ERRORS[place % len(_ERRORS)],)
        yield from [Strike(call, error) for error in errors]
