"""SIGKILL at every system call of the program that confines owners: what it has begun, the next call undoes.

From the first call on the ledger's lock onwards those that change something are swept, and every eightieth other one,
each scenario beginning at another one; ``CRASH_SWEEP=full`` sweeps all. Of the calls before only a sample is taken.
The program alone is killed: the child that proves the confinement goes on, and ends by itself.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.crash.strace import Call
from tests.crash_isolation.conftest import Notes
from tests.crash_isolation.scenarios import SCENARIOS
from tests.crash_isolation.stage import Stage
from tests.crash_isolation.strikes import Strike, changes
from tests.crash_isolation.verdict import Judge, tried_again

pytestmark = pytest.mark.timeout(600)
_FULL = os.environ.get("CRASH_SWEEP") == "full"
_LOCK = "ledger.lock"
_STEP, _EARLY_STEP = (1, 20) if _FULL else (80, 800)


def test_killed_at_any_call_what_it_began_is_undone_or_complete(stage: Stage, judge: Judge, notes: Notes) -> None:
    calls, commit = stage.calls, _commit(stage.calls)
    locked = next(call.place for call in calls if call.text.startswith("openat") and _LOCK in call.text)
    first = SCENARIOS.index(stage.scenario)
    unreached = 0

    def trial(strike: Strike) -> list[str]:
        nonlocal unreached
        result, seen, missed = stage.suffer(strike)
        if missed and strike.varies:
            unreached += 1
            return []
        if missed or result.code != -9:
            return [missed or f"exit code {result.code}"]
        committed = None if strike.varies else strike.call.place > commit
        return judge.of_a_kill(strike, result, seen, committed=committed)

    for call in [*calls[1 + first : locked : _EARLY_STEP], *_sample(calls[locked:], first)]:
        strike = Strike(call)
        notes.note(stage.tell(strike), tried_again(partial(trial, strike)))
    notes.tell()
    assert unreached <= notes.injections // 10, f"{unreached} calls were not made again"


def _sample(calls: tuple[Call, ...], first: int) -> list[Call]:
    chosen = {call.place for call in calls if changes(call)} | {call.place for call in calls[first::_STEP]}
    return [call for call in calls if call.place in chosen]


def _commit(calls: tuple[Call, ...]) -> int:
    """The place of the call with which the ledger says what it says in the end."""
    renames = [call.place for call in calls if call.name == "rename"]
    return renames[-1] if renames else len(calls)
