"""``doctor``: what a task executor that starts here would meet."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import reachable
from tests.support.script import MODULE, SCRIPT, run

SIMULATED = ("--backend", "simulated:4")


def states(out: str) -> dict[str, str]:
    return {check["check"]: check["state"] for check in json.loads(out)["checks"]}


def test_a_host_where_all_is_well(tmp_path: Path) -> None:
    result = run("doctor", *SIMULATED, "--ledger", str(tmp_path / "ledger"))
    assert (result.code, result.err) == (0, "")
    assert [line.split()[:2] for line in result.out.splitlines()] == [
        ["ok", "driver"],
        ["ok", "nodes"],
        ["ok", "ledger"],
    ]
    assert list(tmp_path.iterdir()) == []


def test_for_programs() -> None:
    result = run("doctor", "--quick", "--json", *SIMULATED)
    assert states(result.out) == {"driver": "ok", "nodes": "ok", "ledger": "ok"}


def test_without_a_driver_it_ends_as_a_call_would() -> None:
    result = run("doctor", "--quick", "--json", "--backend", "nvml", program=MODULE)
    assert (result.code, states(result.out)["driver"]) == (71, "fault")
    assert result.err.startswith("flink-gpu-discovery: driver: NVML:")
    assert result.err.count("\n") == 1


def test_without_a_gpu_it_is_a_fault() -> None:
    assert run("doctor", "--backend", "simulated:0").code == 69


def test_a_damaged_ledger_is_a_fault(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.write_text("#flink-gpu-ledger 1\n")
    assert run("doctor", *SIMULATED, "--ledger", str(ledger)).code == 65


def test_a_missing_folder_is_a_fault(tmp_path: Path) -> None:
    result = run("doctor", *SIMULATED, "--ledger", str(tmp_path / "none" / "ledger"))
    assert result.code == 74
    assert "systemd-tmpfiles --create" in result.err


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
def test_a_folder_that_the_user_may_not_write_is_a_fault(tmp_path: Path) -> None:
    folder = reachable(tmp_path) / "state"
    folder.mkdir(mode=0o755)
    words = ["setpriv", "--reuid=65534", "--clear-groups", str(SCRIPT), "doctor", *SIMULATED]
    done = subprocess.run(
        [*words, "--ledger", f"{folder}/ledger"], capture_output=True, text=True, timeout=20, check=False
    )
    assert (done.returncode, "uid 65534 may not write to" in done.stderr) == (77, True), done


@pytest.mark.parametrize("option", ["--check-dead", "--wait=1", "--owner-pid=7"])
def test_options_that_it_has_no_use_for_are_refused(option: str) -> None:
    assert run("doctor", *SIMULATED, option).code == 64
