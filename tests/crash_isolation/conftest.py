"""Faults in the program that confines owners: on the real kernel, in labs, each scenario in each view."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.crash.findings import Findings
from tests.crash.strace import why_unusable
from tests.crash_isolation.host import Host, new_lab
from tests.crash_isolation.scenarios import SCENARIOS, Scenario
from tests.crash_isolation.stage import Stage
from tests.crash_isolation.verdict import Judge
from tests.isolation.hierarchies import View, why_impossible
from tests.isolation.installation import prepare_release

Play = tuple[Scenario, View]
# The two kinds of device cgroups; a hybrid host takes the same way as one with version 2, so one sample is enough.
_VIEWS: tuple[View, ...] = ("v2", "v1")
PLAYS: tuple[Play, ...] = (*[(one, view) for one in SCENARIOS for view in _VIEWS], (SCENARIOS[0], "hybrid"))


def name_of(play: Play) -> str:
    """For people."""
    return f"{play[0]}-{play[1]}"


class Notes(Findings):
    """Findings in words of one's own."""

    def note(self, what: str, wrong: list[str]) -> None:
        """Count an injection, and note what is wrong after it."""
        self.injections += 1
        if wrong:
            self._wrong.append("\n    ".join([what, *wrong]))


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, compiled, as labs install it."""
    reason = why_unusable()
    if reason:
        pytest.skip(reason)
    return prepare_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(params=PLAYS, ids=name_of)
def stage(request: pytest.FixtureRequest, tmp_path: Path, release: Path) -> Iterator[Stage]:
    """Each scenario in each view, set up in a lab of its own."""
    scenario, view = request.param
    reason = why_impossible(view)
    if reason:
        pytest.skip(reason)
    with new_lab(tmp_path / "lab", view, release) as lab:
        yield Stage(scenario, Host(lab), lab.path("/run/strace.log"))


@pytest.fixture
def judge(stage: Stage) -> Judge:
    """Says what is wrong after an injection."""
    return Judge(stage)


@pytest.fixture
def notes(record_property: Callable[[str, object], None]) -> Iterator[Notes]:
    """What goes wrong in one test; the number of injections goes into the JUnit report."""
    notes = Notes()
    yield notes
    record_property("injections", notes.injections)
