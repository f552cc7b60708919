"""The unprivileged side of isolation: hand the call on to the root-owned program, through sudo.

sudo takes this process's place, so that the task executor stays its parent, and whoever ends the call ends sudo.
"""

from __future__ import annotations

import os

from flink_gpu_discovery import callers, visibility
from flink_gpu_discovery.arguments import PRIVILEGED_OPTIONS_OF
from flink_gpu_discovery.errors import PermissionRefusedError, SystemRefusedError, UsageError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.options import SETTINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from flink_gpu_discovery.arguments import Request

PROGRAM = "/usr/local/libexec/flink-gpu-discovery-root"
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
# Said by calling it at all, or of no meaning there.
_MEANT_ANYWAY = ("isolate", "coordinate", "debug")


def hand_over(request: Request, environment: Mapping[str, str]) -> NoReturn:
    """Become ``sudo -n`` of the root-owned program; raises if that can't be, or if something would get lost."""
    command = "deallocateAll" if request.command == "release" else request.command
    _check_nothing_gets_lost(request, command, environment)
    words = [command, *([str(request.amount)] if command == "allocate" else [])]
    resource = request.given.text("resource")
    if resource is not None and command == "allocate":
        words += ["--resource", resource]
    if b"NoNewPrivs:\t1" in read_file("/proc/self/status"):
        raise SystemRefusedError(
            "isolation without root goes through sudo, and this process may gain no privileges",
            "NoNewPrivileges=no in the unit, and nothing that implies it (RestrictSUIDSGID=, SystemCallFilter= ...)",
        )
    for path, mend in (
        (callers.SUDO, "install sudo"),
        (PROGRAM, "install it, owned by root, as docs/security.md says"),
    ):
        if not os.path.exists(path):
            raise SystemRefusedError(f"isolation without root goes through {path}, which is missing", mend)
    try:
        os.execve(callers.SUDO, [callers.SUDO, "-n", "--", PROGRAM, *words], _ENVIRONMENT)  # noqa: S606
    except OSError as error:
        raise PermissionRefusedError(
            f"{callers.SUDO} can't be started as uid {os.geteuid()}: {error.strerror}", "let this user run it"
        ) from error


def _check_nothing_gets_lost(request: Request, command: str, environment: Mapping[str, str]) -> None:
    reaching = (*_MEANT_ANYWAY, *PRIVILEGED_OPTIONS_OF[command], *(["resource"] if command == "deallocateAll" else []))
    lost = [name for name in request.given.names() if name not in reaching]
    if lost:
        mend = "set it in the settings file, or leave it out" if lost[0] in SETTINGS else "leave it out, or be root"
        raise UsageError(f"--{lost[0]} doesn't reach the program that runs as root", mend)
    narrowing = [name for name in visibility.VARIABLES if environment.get(name, "all").strip() != "all"]
    if command == "allocate" and narrowing:
        raise UsageError(
            f"{narrowing[0]}={environment[narrowing[0]][:60]!r} doesn't reach the program that runs as root",
            "unset it for the task executor: isolation itself keeps it to its GPUs",
        )
