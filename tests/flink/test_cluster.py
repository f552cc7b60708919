"""TaskManagers of one host get their GPUs from the discovery script, as released Flink calls it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.script import SCRIPT

from .cluster import Cluster
from .configuration import GpuSettings
from .daemon import Daemon
from .discovery_log import discovered_gpus, failed_script
from .job import ReportJob
from .script import Script

pytestmark = [pytest.mark.flink, pytest.mark.timeout(120, func_only=True)]

ALL_GPUS = frozenset({"0", "1", "2", "3"})

# Notes the arguments that Flink gives to a script without configured ones, and hands them on. `exec` keeps
# the TaskManager the parent of the real script.
RECORDING_WRAPPER = """\
#!/bin/sh
printf '%s\\n' "$@" > {record}
exec {script} "$@" --backend simulated:4
"""


def test_taskmanagers_of_one_host_get_disjoint_gpus(
    pair: tuple[Daemon, Daemon],
    shared_cluster: Cluster,
    shared_script: Script,
    report_job: ReportJob,
    tmp_path: Path,
) -> None:
    logged = {taskmanager.pid: discovered_gpus(taskmanager.log()) for taskmanager in pair}
    seen_by_job = report_job.run(shared_cluster, tmp_path / "report")

    first, second = seen_by_job.values()
    assert len(first) == len(second) == 2
    assert first | second == ALL_GPUS
    assert logged == seen_by_job == shared_script.gpus_by_owner()


def test_a_taskmanager_too_many_gets_none_and_leaves_the_ledger_as_it_was(
    pair: tuple[Daemon, Daemon],
    shared_cluster: Cluster,
    shared_script: Script,
    report_job: ReportJob,
    tmp_path: Path,
) -> None:
    before = shared_script.ledger.read_bytes()

    *_, third = shared_cluster.settle(3)

    exit_status, output, message = failed_script(third.log()) or (0, "", "")
    assert (exit_status, output) == (69, "")
    assert message.startswith("flink-gpu-discovery: too few GPUs: 2 asked for, 4 seen")
    assert all(str(holder.pid) in message for holder in pair)
    assert discovered_gpus(third.log()) is None
    assert report_job.run(shared_cluster, tmp_path / "report")[third.pid] == frozenset()
    assert shared_script.ledger.read_bytes() == before


def test_the_successor_of_a_killed_taskmanager_takes_over_its_gpus(
    pair: tuple[Daemon, Daemon],
    shared_cluster: Cluster,
    shared_script: Script,
    report_job: ReportJob,
    tmp_path: Path,
) -> None:
    killed, survivor = pair
    survivors_lines = shared_script.ledger_lines(survivor.pid)
    assert len(survivors_lines) == 2
    orphaned = shared_script.gpus_by_owner()[killed.pid]
    shared_cluster.end(killed, signal.SIGKILL)

    survivor, successor = shared_cluster.settle(2)

    assert discovered_gpus(successor.log()) == orphaned
    held = {survivor.pid: ALL_GPUS - orphaned, successor.pid: orphaned}
    assert shared_script.gpus_by_owner() == held
    assert shared_script.ledger_lines(survivor.pid) == survivors_lines
    assert report_job.run(shared_cluster, tmp_path / "report") == held


def test_the_word_null_that_flink_appends_without_args_is_ignored(shared_cluster: Cluster, tmp_path: Path) -> None:
    record, wrapper = tmp_path / "arguments", tmp_path / "discovery.sh"
    wrapper.write_text(RECORDING_WRAPPER.format(record=record, script=SCRIPT))
    wrapper.chmod(0o755)

    (taskmanager,) = shared_cluster.start_taskmanagers(1, GpuSettings(wrapper, args=None, amount=2))
    shared_cluster.end(taskmanager, signal.SIGTERM)

    assert record.read_text().splitlines() == ["2", "null"]
    assert discovered_gpus(taskmanager.log()) == frozenset({"0", "1"})


def test_reclaim_empties_the_ledger_after_the_cluster_has_stopped(
    pair: tuple[Daemon, Daemon], shared_cluster: Cluster, shared_script: Script
) -> None:
    shared_cluster.stop()
    # No released Flink tells the script that a TaskManager ends, so the records are still there.
    assert {record.liveness for record in shared_script.records()} == {"dead"}

    shared_script.reclaim()

    assert shared_script.records() == ()
