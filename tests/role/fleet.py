"""What the role's tests share: hosts with simulated GPUs, the variables for them, and a look at all that a host has."""

from __future__ import annotations

import json

from tests.booted.host import BootedHost

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
# Copies that useradd(8) and its like make of the old files.
_LOOK = r"""
import hashlib, json, os, stat, sys
found = {}
def look(path):
    status = os.lstat(path)
    about = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        about += " -> " + os.readlink(path)
    elif stat.S_ISREG(status.st_mode):
        with open(path, "rb") as stream:
            about += " " + hashlib.sha256(stream.read()).hexdigest()
    found[path] = about
    if stat.S_ISDIR(status.st_mode):
        for name in os.listdir(path):
            look(os.path.join(path, name))
folders = ["/etc", "/opt", "/usr/local", *(f"/run/{name}" for name in os.listdir("/run") if name.startswith("flink"))]
for folder in folders:
    look(folder)
backups = [f"/etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")]
print(json.dumps({path: about for path, about in found.items() if path not in backups}))
"""


def prepare_gpus(host: BootedHost) -> None:
    """Device nodes for the simulated GPUs; no driver is behind them."""
    host.succeed("sh", "-ec", _MAKE_NODES)


def snapshot(host: BootedHost) -> dict[str, str]:
    """Of each path where the role puts things: kind, mode, owner, and the content's hash or the link's target."""
    found: dict[str, str] = json.loads(host.succeed("/usr/bin/python3", "-IS", "-c", _LOOK))
    return found


def differences(before: dict[str, str], after: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    """What is not as it was."""
    paths = sorted(before.keys() | after.keys())
    return {path: (before.get(path), after.get(path)) for path in paths if before.get(path) != after.get(path)}
