"""Waiting with a limit, and telling what the logs held when the limit passed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")

TAIL_LINES = 15


def wait_until(probe: Callable[[], Found], seconds: float, what: str, logs: Path) -> Found:
    """Return the probe's first true answer; after `seconds` fail with the ends of the logs below `logs`."""
    deadline = time.monotonic() + seconds
    while not (found := probe()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:.0f} s\n{log_tails(logs)}")
        time.sleep(0.1)
    return found


def log_tails(folder: Path) -> str:
    """Return the last lines of each log file below `folder`, each under its name."""
    files = [file for pattern in ("*.log", "*.out") for file in sorted(folder.rglob(pattern))]
    return "\n".join(f"--- {file}\n{_tail(file)}" for file in files)


def _tail(file: Path) -> str:
    return "\n".join(file.read_text(errors="replace").splitlines()[-TAIL_LINES:])
