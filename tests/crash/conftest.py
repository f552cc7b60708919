"""Fault injection needs strace(1) and the right to trace; the program is a copy that nobody edits meanwhile."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.findings import Findings
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.stage import Stage
from tests.crash.strace import why_unusable
from tests.support.script import ROOT


@pytest.fixture(scope="session")
def strace_works() -> None:
    """Skip what injects faults where none can be injected."""
    reason = why_unusable()
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def room() -> Iterator[Path]:
    """A folder that other users reach, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="session")
def script(room: Path) -> Path:
    """The script of a copy, so that a kill while Python stores a compiled module leaves nothing in the checkout."""
    tree = shutil.copytree(ROOT / "discovery", room / "discovery", ignore=shutil.ignore_patterns("*.egg-info"))
    return Path(tree) / "bin" / "flink-gpu-discovery"


@pytest.fixture(params=SCENARIOS, ids=str)
def stage(request: pytest.FixtureRequest, strace_works: None, room: Path, script: Path) -> Iterator[Stage]:
    """Each scenario in turn, set up in a folder of its own."""
    scenario: Scenario = request.param
    if scenario.shared and os.geteuid() != 0:
        pytest.skip("only root can be another user's caller")
    with tempfile.TemporaryDirectory(dir=room) as name:
        Path(name).chmod(0o755)
        with Stage(scenario, script, Path(name)) as stage:
            yield stage


@pytest.fixture
def findings(record_property: Callable[[str, object], None]) -> Iterator[Findings]:
    """What goes wrong in one test; the number of injections goes into the JUnit report."""
    findings = Findings()
    yield findings
    record_property("injections", findings.injections)
