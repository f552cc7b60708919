"""The real command with a ledger, called by real processes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.support.executor import TaskExecutor
from tests.support.script import PATH, SCRIPT, run

FOUR = ("--backend", "simulated:4")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger"


def records(ledger: Path) -> list[dict[str, Any]]:
    result = run("status", "--json", "--ledger", str(ledger))
    assert result.code == 0, result.err
    found: list[dict[str, Any]] = json.loads(result.out)["records"]
    return found


def test_task_executors_get_disjoint_gpus_until_none_is_left(ledger: Path) -> None:
    words = ("2", *FOUR, "--ledger", str(ledger))
    with TaskExecutor() as first, TaskExecutor() as second, TaskExecutor() as third:
        assert first.call(*words).out == "0,1\n"
        assert second.call(*words).out == "2,3\n"
        before = ledger.read_bytes()
        refused = third.call(*words)
        assert (refused.code, refused.out) == (69, "")
        assert f"4 held by pid {first.pid}" in refused.err
        assert f"pid {second.pid}" in refused.err
        assert ledger.read_bytes() == before
        assert first.call(*words).out == "0,1\n"
        assert ledger.read_bytes() == before
        assert first.call("3", *words[1:]).code == 64
        assert ledger.read_bytes() == before


def test_a_record_says_who_holds_what_since_when(ledger: Path) -> None:
    with TaskExecutor() as executor:
        executor.call("1", *FOUR, "--ledger", str(ledger), "--resource", "cards")
        (record,) = records(ledger)
        assert record["owner"]["pid"] == executor.pid
        assert record["owner"]["uid"] == os.getuid()
        assert record["owner"]["liveness"] == "alive"
        assert (record["index"], record["resource"], record["state"], record["cgroup"]) == ("0", "cards", "held", None)
        assert record["since"].startswith("20")
        table = run("status", "--ledger", str(ledger)).out
        assert str(executor.pid) in table
        assert record["uuid"] in table
        executor.kill()
        assert records(ledger)[0]["owner"]["liveness"] == "dead"


def test_deallocate_gives_back_all_of_the_owner_and_nothing_of_others(ledger: Path) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    with TaskExecutor() as first, TaskExecutor() as second:
        assert first.call("1", *words).out == "0\n"
        assert first.call("1", *words, "--resource", "other").out == "1\n"
        assert second.call("2", *words).out == "2,3\n"
        assert first.call("deallocateAll", *words).code == 0
        assert {record["owner"]["pid"] for record in records(ledger)} == {second.pid}
        assert first.call("deallocateAll", *words).code == 0
        assert first.call("release", "2", *words).code == 0
        assert first.call("2", *words).out == "0,1\n"
        assert second.call("release", "2", *words).code == 0
        assert [record["index"] for record in records(ledger)] == ["0", "1"]


def test_deallocate_without_a_ledger_leaves_none_behind(ledger: Path) -> None:
    result = run("deallocateAll", "--ledger", str(ledger))
    assert (result.code, result.out, result.err) == (0, "", "")
    assert not ledger.parent.exists()


def test_dead_owners_gpus_are_taken_over_only_on_request(ledger: Path) -> None:
    words = ("3", *FOUR, "--ledger", str(ledger))
    with TaskExecutor() as victim, TaskExecutor() as heir:
        assert victim.call(*words).out == "0,1,2\n"
        victim.kill()
        refused = heir.call("2", *words[1:])
        assert refused.code == 69
        assert "--check-dead" in refused.err
        taken = heir.call("2", *words[1:], "--check-dead")
        assert (taken.code, taken.out) == (0, "0,3\n")
        assert f"GPU 0 was taken over from pid {victim.pid}" in taken.err
        assert {record["index"]: record["owner"]["pid"] for record in records(ledger)} == {
            "0": heir.pid,
            "1": victim.pid,
            "2": victim.pid,
            "3": heir.pid,
        }


def test_reclaim_frees_the_dead_and_says_so(ledger: Path) -> None:
    words = ("2", *FOUR, "--ledger", str(ledger))
    with TaskExecutor() as victim, TaskExecutor() as survivor:
        victim.call(*words)
        survivor.call(*words)
        assert run("reclaim", "--ledger", str(ledger)).out == f"nothing to reclaim ({ledger})\n"
        victim.kill()
        report = run("reclaim", "--ledger", str(ledger)).out.splitlines()
        assert [line.split(" (")[0] for line in report] == ["reclaimed GPU 0", "reclaimed GPU 1"]
        assert {record["owner"]["pid"] for record in records(ledger)} == {survivor.pid}
        survivor.kill()
        freed = json.loads(run("reclaim", "--json", "--ledger", str(ledger)).out)["reclaimed"]
        assert [record["index"] for record in freed] == ["2", "3"]
        assert records(ledger) == []


def test_wait_lets_a_new_owner_start_while_the_old_one_dies(ledger: Path) -> None:
    words = ("4", *FOUR, "--ledger", str(ledger), "--check-dead")
    with TaskExecutor() as old, TaskExecutor() as new:
        old.call(*words)
        new.start(*words, "--wait", "6")
        time.sleep(0.5)
        old.kill()
        assert new.finish().out == "0,1,2,3\n"


def test_waiting_in_vain_ends_before_the_deadline_and_says_who_holds_what(ledger: Path) -> None:
    with TaskExecutor() as holder:
        holder.call("4", *FOUR, "--ledger", str(ledger))
        start = time.monotonic()
        refused = run("1", *FOUR, "--ledger", str(ledger), "--wait", "60", "--deadline", "1.5")
        assert 1 < time.monotonic() - start < 4
        assert refused.code == 69
        assert f"held by pid {holder.pid}" in refused.err


def test_a_lock_that_is_kept_ends_at_the_deadline(ledger: Path) -> None:
    ledger.parent.mkdir()
    lock = ledger.with_name("ledger.lock")
    with subprocess.Popen(["flock", "--no-fork", str(lock), "sleep", "30"]) as keeper:
        try:
            while subprocess.run(["flock", "-n", lock, "true"], check=False).returncode == 0:
                time.sleep(0.01)
            start = time.monotonic()
            result = run("1", *FOUR, "--ledger", str(ledger), "--deadline", "1")
            assert (result.code, result.out) == (75, "")
            assert f"is still locked by pid {keeper.pid} (" in result.err
            assert time.monotonic() - start < 4
            assert not ledger.exists()
        finally:
            keeper.kill()


def test_the_owner_may_be_named(ledger: Path) -> None:
    with TaskExecutor() as executor:
        assert run("2", *FOUR, "--ledger", str(ledger), "--owner-pid", str(executor.pid)).out == "0,1\n"
        assert executor.call("2", *FOUR, "--ledger", str(ledger)).out == "0,1\n"
        assert run("deallocateAll", "--ledger", str(ledger), "--owner-pid", str(executor.pid)).code == 0
        assert records(ledger) == []


def test_ordinals_are_places_among_the_owners_own(ledger: Path) -> None:
    words = ("2", *FOUR, "--ledger", str(ledger), "--id", "ordinal")
    with TaskExecutor() as first, TaskExecutor() as second:
        assert first.call(*words).out == "0,1\n"
        assert second.call(*words).out == "0,1\n"
        assert {record["index"] for record in records(ledger)} == {"0", "1", "2", "3"}


@pytest.mark.parametrize("executors", [16])
def test_many_that_start_at_once_get_disjoint_gpus_and_none_is_refused(ledger: Path, executors: int) -> None:
    words = ("2", "--backend", f"simulated:{2 * executors}", "--ledger", str(ledger))
    with ExitStack() as stack:
        all_of_them = [stack.enter_context(TaskExecutor()) for _ in range(executors)]
        for executor in all_of_them:
            executor.start(*words)
        results = [executor.finish() for executor in all_of_them]
    assert {result.code for result in results} == {0}, results
    given = [index for result in results for index in result.out.strip().split(",")]
    assert sorted(given, key=int) == [str(index) for index in range(2 * executors)]


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_modes_do_not_depend_on_the_umask(ledger: Path, umask: int) -> None:
    command = f'umask {umask:03o}; exec "$@"'
    words = ["/bin/sh", "-c", command, "sh", str(SCRIPT), "1", *FOUR, "--ledger", str(ledger)]
    subprocess.run(words, check=True, timeout=20, env={"PATH": PATH}, stdout=subprocess.DEVNULL)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (ledger.parent, *ledger.parent.iterdir())}
    assert modes == {"state": 0o770, "ledger": 0o660, "ledger.lock": 0o660}


def test_the_settings_file_is_read(tmp_path: Path, ledger: Path) -> None:
    conf = tmp_path / "conf"
    conf.write_text(f"[flink-gpu-discovery]\nbackend = simulated:4\nledger = {ledger}\n")
    assert run("2", "--config", str(conf)).out == "0,1\n"
    assert ledger.read_bytes().endswith(b"#end 2\n")
    conf.write_text("[flink-gpu-discovery]\nbackend = simulated:4\nfrob = 1\n")
    result = run("2", "--config", str(conf))
    assert (result.code, result.out) == (78, "")
    assert f"{conf}:3: unknown setting 'frob'" in result.err
    assert run("2", "--config", str(tmp_path / "missing")).code == 78


def test_the_environment_narrows_what_is_handed_out(ledger: Path) -> None:
    words = ("--ledger", str(ledger), *FOUR)
    assert run("2", *words, env={"CUDA_VISIBLE_DEVICES": "3,1"}).out == "1,3\n"
    refused = run("2", *words, "--resource", "b", env={"CUDA_VISIBLE_DEVICES": "3,0"})
    assert refused.code == 69
    assert "CUDA_VISIBLE_DEVICES='3,0' shows 2 of 4 GPUs" in refused.err
    assert run("2", *words, "--resource", "b", env={"CUDA_VISIBLE_DEVICES": "x"}).code == 64
