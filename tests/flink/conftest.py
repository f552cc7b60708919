"""Fixtures: Flink, fetched once and cached; the cluster that the tests share; the job; the script."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.isolation.conftest import nvml_library, release

from .cluster import Cluster
from .configuration import GpuSettings
from .daemon import Daemon
from .job import ReportJob, compile_job
from .script import Script

__all__ = ["nvml_library", "release"]

FLINK_VERSION = "2.3.0"
FETCH = Path(__file__).parents[2] / "tools" / "fetch_flink.py"
FETCH_LIMIT_SECONDS = 1800.0


@pytest.fixture(scope="session")
def flink_home() -> Path:
    """FLINK_HOME of the release under test; skips where it, or Java, can't be had."""
    absent = [program for program in ("java", "javac") if shutil.which(program) is None]
    if absent:
        pytest.skip(f"no {' and no '.join(absent)} in PATH (Debian: openjdk-17-jdk-headless)")
    command = [sys.executable, str(FETCH), FLINK_VERSION]
    fetched = subprocess.run(command, check=False, capture_output=True, text=True, timeout=FETCH_LIMIT_SECONDS)
    if fetched.returncode != 0:
        pytest.skip(fetched.stderr.strip().splitlines()[-1])
    return Path(fetched.stdout.strip())


@pytest.fixture(scope="session")
def report_job(flink_home: Path, tmp_path_factory: pytest.TempPathFactory) -> ReportJob:
    return compile_job(flink_home, tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="session")
def shared_script(tmp_path_factory: pytest.TempPathFactory) -> Script:
    """The script with the ledger of the shared cluster."""
    return Script(tmp_path_factory.mktemp("ledger") / "ledger")


@pytest.fixture(scope="session")
def shared_cluster(
    flink_home: Path, shared_script: Script, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """A cluster whose TaskManagers take two GPUs each of the host's four."""
    args = f"--coordinate --check-dead --backend simulated:4 --ledger {shared_script.ledger}"
    cluster = Cluster(flink_home, tmp_path_factory.mktemp("cluster"), GpuSettings(shared_script.path, args, amount=2))
    try:
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def pair(shared_cluster: Cluster) -> tuple[Daemon, Daemon]:
    """The shared cluster's two TaskManagers: started, registered, and alone, whatever ran before."""
    first, second = shared_cluster.settle(2)
    return first, second
