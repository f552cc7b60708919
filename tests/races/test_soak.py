"""The soak in small, and that it sees what it looks for."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.executors import SCRIPT
from benchmarks.soak_ledger import Record
from benchmarks.soaking import Plan, Soak


def soak(plan: Plan) -> Record:
    return Soak(plan).run()


def faults_of(tmp_path: Path, *body: str) -> str:
    """What a soak of a script that does this says."""
    script = tmp_path / "script"
    script.write_text("\n".join(["#!/bin/sh", *body]) + "\n")
    script.chmod(0o755)
    (tmp_path / "state").mkdir()
    plan = Plan(tmp_path, operations=150, script=script, script_kills=0, script_terms=0, owner_kills=0)
    return "\n".join(soak(plan).faults)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_2000_operations_killed_at_random_leave_the_ledger_right_all_the_while(tmp_path: Path) -> None:
    record = soak(Plan(tmp_path, operations=2000, seconds=150))
    assert record.faults == []
    assert record.operations == 2000
    assert record.counts["calls ended by SIGKILL"] > 200
    assert record.counts["calls ended by SIGTERM"] > 20
    assert record.counts["owners killed in the middle of a call"] > 10


@pytest.mark.timeout(180)
def test_2000_forked_operations_killed_at_random_do_as_well(tmp_path: Path) -> None:
    record = soak(Plan(tmp_path, operations=2000, forks=True, seconds=150))
    assert record.faults == []
    assert record.operations == 2000


@pytest.mark.timeout(180)
def test_owners_that_allocate_deallocate_and_reclaim_at_once_are_never_refused_a_free_gpu(tmp_path: Path) -> None:
    plan = Plan(tmp_path, operations=400, owners=8, gpus=24, script_kills=0, script_terms=0, seconds=150)
    record = soak(plan)
    assert record.faults == []
    assert record.operations == 400


def test_a_script_that_answers_without_recording_is_found_out(tmp_path: Path) -> None:
    drops_the_ledger = f'case $1 in allocate) exec {SCRIPT} "$1" "$2" "$3" "$4" ;; *) exec {SCRIPT} "$@" ;; esac'
    found = faults_of(tmp_path, drops_the_ledger)
    assert "double grant" in found
    assert "is recorded with []" in found


def test_a_script_that_never_gives_back_is_found_out(tmp_path: Path) -> None:
    found = faults_of(tmp_path, f'case $1 in deallocateAll) exit 0 ;; *) exec {SCRIPT} "$@" ;; esac')
    assert "has [], does nothing, is recorded with [" in found


def test_a_script_that_refuses_for_nothing_is_found_out(tmp_path: Path) -> None:
    found = faults_of(tmp_path, "case $1 in allocate) exit 69 ;; *) exit 0 ;; esac")
    assert "though enough were free" in found


def test_a_ledger_that_is_cut_off_is_found_out(tmp_path: Path) -> None:
    cut = 'for word; do case $word in */ledger) printf "#flink-gpu-ledger 1\\tuuid\\tindex\\t" >"$word" ;; esac; done'
    assert "the ledger is not whole" in faults_of(tmp_path, cut)
