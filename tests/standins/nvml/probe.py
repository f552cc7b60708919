"""Asks the stand-in questions through the real pynvml, each time in a process of its own.

A process loads a library once and keeps it, so one process can't see two scenarios or two libraries.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .scenario import Scenario, environment, write

_PRELUDE = """
import json
import pynvml as nvml

def attempt(call, *args):
    try:
        return call(*args)
    except nvml.NVMLError as error:
        return type(error).__name__

def gpu(index):
    return nvml.nvmlDeviceGetHandleByIndex(index)

def uuids():
    return [nvml.nvmlDeviceGetUUID(gpu(index)) for index in range(nvml.nvmlDeviceGetCount())]
"""


@dataclass(frozen=True)
class Probe:
    """A library and a folder for scenario files."""

    library: Path
    folder: Path

    def write(self, scenario: Scenario) -> Path:
        return write(scenario, self.folder / "scenario")

    def start(self, scenario_file: Path | None, code: str) -> subprocess.Popen[str]:
        """A process that runs the code; the caller ends it."""
        return subprocess.Popen(
            [sys.executable, "-c", f"{_PRELUDE}\n{code}"],
            env=environment(self.library, scenario_file),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, scenario_file: Path | None, code: str, seconds: float = 20) -> subprocess.CompletedProcess[str]:
        process = self.start(scenario_file, code)
        try:
            out, err = process.communicate(timeout=seconds)
        finally:
            process.kill()
            process.wait()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def evaluate(self, scenario_file: Path | None, expression: str, *, setup: Sequence[str] = ()) -> object:
        """What the expression is worth in a process that initialised NVML."""
        lines = ["nvml.nvmlInit()", *setup, f"print(json.dumps({expression}))"]
        result = self.run(scenario_file, "\n".join(lines))
        if result.returncode != 0:
            raise AssertionError(f"exit {result.returncode}: {result.stderr}")
        answer: object = json.loads(result.stdout)
        return answer

    def ask(self, scenario: Scenario, expression: str, *, setup: Sequence[str] = ()) -> object:
        """The same for a scenario that is written first."""
        return self.evaluate(self.write(scenario), expression, setup=setup)
