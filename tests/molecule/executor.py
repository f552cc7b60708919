"""What stands for a task executor while plays go on: it asks for two GPUs again and again, and notes each answer.

usage: python3 -m tests.molecule.executor FILE

A line of the file is one JSON object: its PID, the release that was current, what the call ended with and said, and
all that the kernel said to opening each GPU from then until the next call.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.isolation.agent_process import try_open

_SCRIPT, _CURRENT = "/usr/local/bin/flink-gpu-discovery", "/opt/flink-gpu-discovery/current"
_NODES = [f"/dev/nvidia{index}" for index in range(4)]
_LOOKS, _SECONDS = 30, 0.05  # between two calls


def main(file: Path) -> None:
    """Until it is ended."""
    with file.open("w", encoding="utf-8", buffering=1) as stream:
        while True:
            release = Path(_CURRENT).readlink().name
            call = subprocess.run([_SCRIPT, "2"], capture_output=True, text=True, check=False)
            seen = {"pid": os.getpid(), "release": release, "code": call.returncode, "out": call.stdout}
            stream.write(json.dumps({**seen, "err": call.stderr, "nodes": _watch()}) + "\n")


def _watch() -> list[list[str]]:
    found: list[list[str]] = []
    for _ in range(_LOOKS):
        if (now := [try_open(node) for node in _NODES]) not in found:
            found.append(now)
        time.sleep(_SECONDS)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]))
