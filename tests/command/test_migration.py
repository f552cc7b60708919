"""The coordination file of Flink's own script: refused, or migrated under upstream's own option."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.executor import TaskExecutor
from tests.support.script import SCRIPT, run

FOUR = ("--backend", "simulated:4")
GONE = 4194304  # above pid_max of any running system's processes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "flink-gpu-coordination"


def test_it_is_refused_with_a_hint_and_kept(file: Path) -> None:
    file.write_text(f"0 {GONE}\n")
    result = run("1", *FOUR, "--coordination-file", str(file))
    assert (result.code, result.out) == (65, "")
    assert "coordination file of Flink's own script with 1 entries" in result.err
    assert "--enable-coordination-mode" in result.err
    assert file.read_text() == f"0 {GONE}\n"


def test_live_entries_become_records_and_dead_ones_go(file: Path) -> None:
    with TaskExecutor() as holder, TaskExecutor() as heir:
        file.write_text(f"1 {holder.pid}\n3 {GONE}\n")
        taken = heir.call("3", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
        assert (taken.code, taken.out) == (0, "0,2,3\n"), taken.err
        records = json.loads(run("status", "--json", "--ledger", str(file)).out)["records"]
        owners = {record["index"]: record["owner"]["pid"] for record in records}
        assert owners == {"0": heir.pid, "1": holder.pid, "2": heir.pid, "3": heir.pid}
        again = holder.call("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
        assert again.out == "1\n"


def test_an_emptied_one_is_migrated(file: Path) -> None:
    file.touch()
    assert run("1", *FOUR, "--coordination-file", str(file)).code == 65
    assert run("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file)).out == "0\n"


def test_a_ledger_that_was_emptied_is_no_upstream_file(file: Path) -> None:
    words = (*FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
    with TaskExecutor() as holder:
        assert holder.call("4", *words).out == "0,1,2,3\n"
        for content in ("", f"1 {GONE}\n"):
            file.write_text(content)
            result = run("1", *words)
            assert (result.code, result.out) == (65, "")
            assert "though a ledger was there" in result.err
            assert file.read_text() == content


def test_deallocate_migrates_too(file: Path) -> None:
    words = (*FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
    with TaskExecutor() as holder, TaskExecutor() as other:
        file.write_text(f"0 {other.pid}\n1 {holder.pid}\n3 {GONE}\n")
        assert holder.call("deallocateAll", *words).code == 0
        records = json.loads(run("status", "--json", "--ledger", str(file)).out)["records"]
        assert {record["index"]: record["owner"]["pid"] for record in records} == {"0": other.pid}


def test_a_gpu_hidden_from_the_caller_keeps_its_owner(file: Path) -> None:
    with TaskExecutor() as holder:
        file.write_text(f"1 {holder.pid}\n")
        words = (*FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
        assert run("2", *words, env={"CUDA_VISIBLE_DEVICES": "2,3"}).out == "2,3\n"
        assert holder.call("1", *words).out == "1\n"


def test_an_entry_of_init_is_nobodys_guess(file: Path) -> None:
    file.write_text("1 1\n")
    result = run("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
    assert result.code == 65
    assert "held by pid 1, but pid 1 can't own GPUs" in result.err


def test_a_gpu_with_two_live_owners_is_nobodys_guess(file: Path) -> None:
    with TaskExecutor() as one, TaskExecutor() as other:
        text = f"1 {one.pid}\n1 {other.pid}\n"
        file.write_text(text)
        result = run("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
        assert result.code == 65
        assert "GPU 1 is held twice" in result.err
        assert file.read_text() == text


def test_a_held_index_that_is_not_there_is_nobodys_guess(file: Path) -> None:
    with TaskExecutor() as one:
        file.write_text(f"7 {one.pid}\n")
        result = run("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
        assert result.code == 65
        assert "GPU 7 is held, but this host has no such GPU" in result.err


def test_a_migration_that_grants_nothing_changes_nothing(file: Path) -> None:
    with TaskExecutor() as one:
        file.write_text(f"1 {one.pid}\n")
        result = run("4", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
        assert result.code == 69
        assert file.read_text() == f"1 {one.pid}\n"


def test_an_entry_of_a_zombie_is_dropped(file: Path) -> None:
    zombie = subprocess.Popen(["true"])
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    file.write_text(f"0 {zombie.pid}\n")
    assert run("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file)).out == "0\n"
    zombie.wait()


def test_a_migration_that_was_killed_is_done_by_the_next_call(file: Path) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    words = ("1", *FOUR, "--enable-coordination-mode", "--coordination-file", str(file))
    with TaskExecutor() as holder:
        file.write_text(f"0 {holder.pid}\n")
        kill = ("-e", "trace=rename", "-e", "inject=rename:signal=KILL:when=1")
        run(*words, program=(strace, "-f", "-o", "/dev/null", *kill, str(SCRIPT)))
        left = file.read_text()
        assert left == f"0 {holder.pid}\n" or left.endswith("#end 2\n")
        assert run(*words).out == "1\n"
