"""What a TaskManager's log tells about the discovery of its GPUs, in Flink's own words."""

from __future__ import annotations

import re

SUCCESS = re.compile(r"Discover GPU resources: \[(.*?)\]")
FAILURE = "WARN .*ExternalResourceUtils .* Failed to retrieve information of external resource gpu"
EXIT = re.compile(r"WARN .*GPUDriver .* Discovery script exit with (\d+)\.\nSTDOUT: (.*)\nSTDERR: (.*)")


def has_tried_discovery(log: str) -> bool:
    """Tell whether the TaskManager has run the discovery script, with or without success."""
    return discovered_gpus(log) is not None or re.search(FAILURE, log) is not None


def discovered_gpus(log: str) -> frozenset[str] | None:
    """Return the indexes that the TaskManager got, or None where it got none."""
    found = SUCCESS.search(log)
    return frozenset(re.findall(r"GPU Device\((.+?)\)", found[1])) if found else None


def failed_script(log: str) -> tuple[int, str, str] | None:
    """Return the script's exit status, output and first line of errors, as the log's warning has them."""
    found = EXIT.search(log)
    return (int(found[1]), found[2], found[3]) if found else None
