"""Run the real command, as Flink and as an operator do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "discovery" / "bin" / "flink-gpu-discovery"
# The same program under the tests' own interpreter, where nvidia-ml-py is installed.
MODULE = (sys.executable, "-m", "flink_gpu_discovery")
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Result:
    """How a call ended: exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def run(
    *words: str | bytes,
    program: Sequence[str] = (str(SCRIPT),),
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    seconds: float = 20,
) -> Result:
    """Call the program with ``words``; its parent, so its owner, is this process."""
    environment = {"PATH": PATH, **(env or {})}
    if tuple(program) == MODULE:
        environment["PYTHONPATH"] = str(ROOT / "discovery")
    done = subprocess.run(
        [*program, *words], capture_output=True, env=environment, cwd=cwd, timeout=seconds, check=False
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())
