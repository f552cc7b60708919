"""The program that sudo lets a user run as root: its own grammar, its own settings, and nothing of the caller's.

Its words are the gate, since sudo checks none. The environment counts only for SUDO_UID, which sudo sets itself.
"""

from __future__ import annotations

import os
import stat
import sys

from flink_gpu_discovery import arguments, callers, cli, interrupts, settings
from flink_gpu_discovery.errors import PermissionRefusedError, SettingsError
from flink_gpu_discovery.given import Given
from flink_gpu_discovery.host import Deadline, Host
from flink_gpu_discovery.isolation import retreat
from flink_gpu_discovery.ledger.files import check_roots
from flink_gpu_discovery.operations.context import Context
from flink_gpu_discovery.options import settle
from flink_gpu_discovery.processes import Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

_GRACE_SECONDS = 0.5  # beyond the deadline that all else keeps: for what blocks all the same
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def run() -> NoReturn:
    """Be the program."""
    os._exit(main(sys.argv[1:], os.environ, Host()))


def main(words: list[str], environment: Mapping[str, str], host: Host) -> int:
    """Carry out one command as root for the user that called sudo; returns the exit code."""
    return cli.guarded(words, lambda: _carry_out(words, environment, host))


def _carry_out(words: list[str], environment: Mapping[str, str], host: Host) -> None:
    interrupts.ignore_relayed_signals()
    if os.geteuid() != 0:
        raise PermissionRefusedError(
            f"this program confines task executors as root, and runs as uid {os.geteuid()}",
            "call flink-gpu-discovery --isolate, which calls it through sudo",
        )
    _check_code()
    request = arguments.parse_privileged(words)
    processes = Processes(host)
    caller = callers.through_sudo(host, processes, environment)
    retreat.leave_cgroups(host)
    retreat.reset_process()
    request.given.add("isolate", "yes", "--isolate")
    options = settle(request.given, _settings(f"{host.etc}/flink-gpu-discovery.conf"), host.run)
    deadline = Deadline(start=processes.started_at(caller.first), seconds=options.deadline_seconds)
    context = Context(
        host=host,
        caller=caller,
        environment=_ENVIRONMENT,
        options=options,
        deadline=deadline,
        processes=processes,
    )
    interrupts.limit(deadline.remaining() + _GRACE_SECONDS)
    cli.operate(request, context)


def _settings(path: str) -> Given:
    """Root's own settings. Without a list of ``resources`` there is the one that has no name of its own."""
    path = os.path.realpath(path)
    if os.path.exists(path):
        check_roots(path)
        found = os.stat(path)
        if found.st_uid != 0 or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise SettingsError(
                f"{path} belongs to uid {found.st_uid} and has mode {stat.S_IMODE(found.st_mode):04o}",
                "it tells a program that runs as root what to do: chown root:root and chmod 0644 it",
            )
    given = settings.load(path, required=False)
    if not given.has("resources"):
        given.add("resources", given.text("resource") or "gpu", path)
    return given


def _check_code() -> None:
    """Code that others may change would let them be root; by then it is too late, but it is said."""
    package = os.path.dirname(os.path.abspath(__file__))
    check_roots(f"{package}/privileged.py")
