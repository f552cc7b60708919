"""Fixtures: each release's loader, kept for the session. Tests of merged files take `reader` and `loader`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path

import pytest

from tools.fetch_flink import home_of

from .loader import Loader, compile_loader
from .readers import READERS, Reader, why_absent


@pytest.fixture(params=READERS, ids=str)
def reader(request: pytest.FixtureRequest) -> Reader:
    """Each release under test with each file that it reads."""
    chosen: Reader = request.param
    return chosen


@pytest.fixture
def flink_home(reader: Reader) -> Path:
    """FLINK_HOME of the reader's release; skips where it, or Java, is missing."""
    return present_home(reader.version)


@pytest.fixture(scope="session")
def loader_of(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Loader]]:
    """The loader of a release, whose JVM then runs until the end of the session."""
    classes: list[Path] = []
    with ExitStack() as running:

        @cache
        def start(version: str) -> Loader:
            home = present_home(version)
            if not classes:
                classes.append(compile_loader(home, tmp_path_factory.mktemp("classes")))
            return running.enter_context(Loader(home, classes[0]))

        yield start


@pytest.fixture
def loader(reader: Reader, loader_of: Callable[[str], Loader]) -> Loader:
    """The loader of the reader's release."""
    return loader_of(reader.version)


def present_home(version: str) -> Path:
    """FLINK_HOME of a release; skips the test where the release, or Java, is missing."""
    absent = [program for program in ("java", "javac") if shutil.which(program) is None]
    if absent:
        pytest.skip(f"no {' and no '.join(absent)} in PATH (Debian: openjdk-17-jdk-headless)")
    reason = why_absent(version)
    if reason:
        pytest.skip(reason)
    return home_of(version)
