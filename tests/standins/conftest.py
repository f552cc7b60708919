"""Shared by the tests of the stand-ins: one build of the NVML library for all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from .nvml.build import build, missing_compiler
from .nvml.probe import Probe


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed, so nothing can call the stand-in")
    reason = missing_compiler()
    if reason:
        pytest.skip(reason)
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(nvml_library: Path, tmp_path: Path) -> Probe:
    return Probe(nvml_library, tmp_path)
