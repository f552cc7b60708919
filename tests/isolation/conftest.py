"""Labs for the tests of isolation: what takes long is made once a session, each test gets a lab of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.hierarchies import VIEWS, View, why_impossible
from tests.isolation.installation import prepare_release
from tests.isolation.lab import SCENARIO, Lab
from tests.isolation.privileged_calls import CARDS
from tests.standins.nvml.build import build, missing_compiler


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stand-in NVML that reads the lab's scenario, whoever calls it with whatever environment."""
    reason = missing_compiler()
    if reason:
        pytest.skip(reason)
    return build(tmp_path_factory.mktemp("nvml"), default_scenario=SCENARIO)


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, compiled, as labs install it."""
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed, so nothing can call the stand-in")
    return prepare_release(tmp_path_factory.mktemp("release"))


@pytest.fixture(params=VIEWS)
def view(request: pytest.FixtureRequest) -> View:
    """Each layout of the cgroups in turn; skips those that this machine can't show."""
    chosen: View = request.param
    reason = why_impossible(chosen)
    if reason:
        pytest.skip(reason)
    return chosen


@pytest.fixture
def new_lab(tmp_path: Path, nvml_library: Path, release: Path) -> Iterator[Callable[..., Lab]]:
    """``new_lab(view, read_only_cgroups=…)``: a further lab with the package installed, closed after the test."""
    with ExitStack() as stack:

        def make(view: View, *, read_only_cgroups: bool = False) -> Lab:
            folder = tmp_path / f"lab-{len(list(tmp_path.iterdir()))}"
            lab = stack.enter_context(
                Lab(folder, view, library=nvml_library, release=release, read_only_cgroups=read_only_cgroups)
            )
            lab.install()
            return lab

        yield make


@pytest.fixture
def lab(view: View, new_lab: Callable[..., Lab]) -> Lab:
    """A lab in each view."""
    return new_lab(view)


@pytest.fixture
def host(lab: Lab) -> Lab:
    """A lab with four NVIDIA GPUs, for the tests of the privileged path."""
    lab.nvidia(*CARDS)
    return lab


@pytest.fixture
def executor(host: Lab) -> Agent:
    """A task executor of user flink on it."""
    return host.executor()
