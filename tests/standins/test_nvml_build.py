"""Building the library: what it exports, what can be left out, and the default scenario."""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

from .nvml.build import LIBRARY_NAME, build, entry_points
from .nvml.probe import Probe
from .nvml.scenario import Scenario, gpus, write

pytestmark = pytest.mark.timeout(120)

# pynvml initialises through nvmlInitWithFlags alone; programs in C use the other one.
NOT_IN_PYNVML = {"nvmlInit_v2"}


def exported(library: Path) -> set[str]:
    listing = subprocess.run(["nm", "-D", "--defined-only", str(library)], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listing.stdout.splitlines()}


def pynvml_source() -> str:
    spec = importlib.util.find_spec("pynvml")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def functions_that_pynvml_calls() -> set[str]:
    return set(re.findall(r"_nvmlGetFunctionPointer\(\s*['\"](\w+)['\"]", pynvml_source()))


def test_exactly_the_listed_entry_points_are_exported(nvml_library: Path) -> None:
    assert exported(nvml_library) == set(entry_points())


def test_every_entry_point_is_one_that_pynvml_calls(nvml_library: Path) -> None:
    assert exported(nvml_library) - functions_that_pynvml_calls() == NOT_IN_PYNVML


def test_pynvmls_error_numbers_are_the_stand_ins(nvml_library: Path) -> None:
    assigned = re.findall(r"^(NVML_(?:SUCCESS|ERROR_\w+))\s*= (\d+)$", pynvml_source(), re.MULTILINE)
    header = (Path(__file__).parent / "nvml" / "abi.h").read_text(encoding="ascii")
    assert re.findall(r"RETURN\((NVML_\w+), (\d+),", header) == assigned


def test_the_library_is_found_under_the_real_ones_name(nvml_library: Path) -> None:
    assert nvml_library.name == LIBRARY_NAME == "libnvidia-ml.so.1"


def test_an_omitted_entry_point_is_not_found_and_the_others_are(nvml: Probe, tmp_path: Path) -> None:
    library = build(tmp_path / "old", omit=["nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows"])
    old = Probe(library, tmp_path)
    asked = "[attempt(nvml.nvmlDeviceGetMigMode, gpu(0)), len(uuids())]"
    assert old.ask(Scenario(gpus(2)), asked) == ["NVMLError_FunctionNotFound", 2]
    assert nvml.ask(Scenario(gpus(2)), asked) == ["NVMLError_NotSupported", 2]


def test_a_driver_too_old_for_flags_cannot_be_initialised(nvml: Probe, tmp_path: Path) -> None:
    old = Probe(build(tmp_path / "old", omit=["nvmlInitWithFlags"]), tmp_path)
    result = old.run(old.write(Scenario(gpus(1))), "print(attempt(nvml.nvmlInit))")
    assert result.stdout.strip() == "NVMLError_FunctionNotFound"


def test_an_unknown_entry_point_cannot_be_omitted(nvml_library: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no entry point nvmlDeviceGetMood"):
        build(tmp_path, omit=["nvmlDeviceGetMood"])


def test_without_the_library_pynvml_says_so(nvml: Probe, tmp_path: Path) -> None:
    nothing = Probe(tmp_path / "empty" / LIBRARY_NAME, tmp_path)
    result = nothing.run(nothing.write(Scenario()), "print(attempt(nvml.nvmlInit))")
    if result.stdout.strip() == "None":
        pytest.skip("this machine has an NVML of its own")
    assert result.stdout.strip() == "NVMLError_LibraryNotFound"


def test_a_default_scenario_serves_those_whose_environment_is_wiped(
    nvml_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STANDIN_NVML_SCENARIO", raising=False)
    default = write(Scenario(gpus(3)), tmp_path / 'a "default" \\ file')
    probe = Probe(build(tmp_path / "library", default_scenario=default), tmp_path)
    assert probe.evaluate(None, "len(uuids())") == 3
    assert probe.ask(Scenario(gpus(1)), "len(uuids())") == 1
