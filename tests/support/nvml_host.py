"""The real command on a host whose GPUs the stand-in NVML library tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.standins.nvml import scenario as nvml
from tests.support.script import MODULE, Result, run


def host_call(
    library: Path, folder: Path, ledger: Path, gpus: tuple[nvml.Gpu, ...], *words: str, **rest: Any
) -> Result:
    """The command on a host with just these GPUs."""
    path = nvml.write(nvml.Scenario(gpus=gpus, **rest), folder / "scenario")
    environment = nvml.environment(library, path, {})
    return run(*words, "--backend", "nvml", "--ledger", str(ledger), program=MODULE, env=environment)
