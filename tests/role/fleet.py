"""What the role's tests share: hosts with simulated GPUs, the variables for them, and a look at all that a host has."""

from __future__ import annotations

import json
from pathlib import Path

from tests.booted.host import ContainerHost
from tests.role import look

GROUP = "taskmanagers"
GPUS = range(4)
NODES = tuple(f"/dev/nvidia{index}" for index in GPUS)
VARIABLES: dict[str, object] = {
    "flink_gpu_backend": f"simulated:{len(GPUS)},nodes=/dev/nvidia%d",
    "flink_gpu_create_user": True,
    "flink_gpu_expected_gpus": len(GPUS),
}
ISOLATED: dict[str, object] = {**VARIABLES, "flink_gpu_isolation": "cgroup", "flink_gpu_amount": 2}

_MAKE_NODES = "\n".join(
    (
        *(f"[ -e {node} ] || mknod --mode=0666 {node} c 195 {index}" for index, node in enumerate(NODES)),
        "[ -e /dev/nvidiactl ] || mknod --mode=0666 /dev/nvidiactl c 195 255",
    )
)
LOOK = Path(look.__file__).read_text(encoding="utf-8")


def prepare_gpus(host: ContainerHost) -> None:
    """Device nodes for the simulated GPUs; no driver is behind them."""
    host.succeed("sh", "-ec", _MAKE_NODES)


def snapshot(host: ContainerHost) -> dict[str, str]:
    """Of each path where the role puts things: kind, mode, owner, and the content's hash or the link's target."""
    found: dict[str, str] = json.loads(host.succeed("/usr/bin/python3", "-IS", "-c", LOOK))
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What is not as it was."""
    paths = sorted(before.keys() | after.keys())
    return {path: (before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)}
