"""SIGKILL at every system call that a command makes: the ledger is the old one or the new one, and nothing is lost.

All calls of the program itself are swept one by one: those from the first one on its package, mostly imports (marked
``slow``), and those from the first one on the ledger's folder. What Python calls before is the same in all scenarios,
so each takes every tenth of these and begins at another one; together they take all. ``CRASH_SWEEP=full`` sweeps all
of them in each scenario. The one call that can't be hit is execve(2), which strace itself makes.

A kill that did not happen where it was meant to is a failure. Only calls of memory management may be fewer in one
run than in another, and few of them.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import pytest

from tests.crash import verdict
from tests.crash.findings import Findings
from tests.crash.scenarios import SCENARIOS
from tests.crash.stage import Stage
from tests.crash.strace import MEMORY, Call, Fault

pytestmark = pytest.mark.timeout(240)
_PACKAGE = "/flink_gpu_discovery"
_STEP = 1 if os.environ.get("CRASH_SWEEP") == "full" else 10
_MOST_UNREACHED = 5


def test_killed_at_any_call_of_its_work_it_leaves_the_old_ledger_or_the_new_one(
    stage: Stage, findings: Findings
) -> None:
    calls = stage.list_calls()
    _kill_at_each(stage, calls, calls[_first_on(str(stage.paths()[0]), calls) :], findings)


@pytest.mark.slow
def test_killed_at_any_call_of_its_start_it_leaves_the_old_ledger(stage: Stage, findings: Findings) -> None:
    calls = stage.list_calls()
    package, work = _first_on(_PACKAGE, calls), _first_on(str(stage.paths()[0]), calls)
    assert calls[0].name == "execve"
    assert 1 < package < work
    interpreter = calls[1 + SCENARIOS.index(stage.scenario) % _STEP : package : _STEP]
    _kill_at_each(stage, calls, [*interpreter, *calls[package:work]], findings)


def _first_on(path: str, calls: Sequence[Call]) -> int:
    return next(call.place for call in calls if path in call.text)


def _kill_at_each(stage: Stage, calls: Sequence[Call], chosen: Sequence[Call], findings: Findings) -> None:
    renames = [call.place for call in calls if call.name.startswith("rename") and str(stage.paths()[1]) in call.text]
    commit = renames[-1] if renames else len(calls)
    unreached = 0
    for call in chosen:
        fault = Fault(call)
        result, files, missed = stage.suffer(fault)
        varies = call.name in MEMORY
        if missed and varies and result.out == stage.answer and stage.is_new(files):
            unreached += 1
        elif missed or result.code != -9:
            findings.add(stage, fault, [missed or f"exit code {result.code}"])
        else:
            committed = not stage.is_old(files, exactly=True) if varies else call.place > commit
            findings.add(stage, fault, verdict.of_a_kill(stage, result, files, committed=committed))
    findings.tell()
    assert unreached <= _MOST_UNREACHED, f"{unreached} calls of memory management were not made again"
