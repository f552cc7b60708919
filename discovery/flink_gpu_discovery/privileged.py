"""The program that sudo lets a user run as root: its own grammar, its own settings, and nothing of the caller's.

Its words are the gate, since sudo checks none. The environment counts only for SUDO_UID, which sudo sets itself.
"""

from __future__ import annotations

import os
import stat
import sys

from flink_gpu_discovery.errors import PermissionRefusedError, SettingsError, UsageError
from flink_gpu_discovery.host import Deadline, Host
from flink_gpu_discovery.isolation.retreat import Leaving, reset_process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from flink_gpu_discovery.arguments import Request
    from flink_gpu_discovery.given import Given
    from flink_gpu_discovery.operations.context import Context

_GRACE_SECONDS = 0.5  # beyond the deadline that all else keeps: for what blocks all the same
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}


def run() -> NoReturn:
    """Be the program."""
    caller = {name: os.environ[name] for name in ("SUDO_UID",) if name in os.environ}
    os.environ.clear()  # libraries read it, too
    os.environ.update(_ENVIRONMENT)
    os._exit(main(sys.argv[1:], caller, Host()))


def main(words: list[str], environment: Mapping[str, str], host: Host) -> int:
    """Carry out one command as root for the user that called sudo; returns the exit code.

    All else is imported while the caller's cgroups are left, which takes as long.
    """
    leaving = Leaving(host)
    if os.geteuid() == 0:
        leaving.start()
    from flink_gpu_discovery import cli

    return cli.guarded(words, lambda: _carry_out(words, environment, host, leaving))


def _carry_out(words: list[str], environment: Mapping[str, str], host: Host, leaving: Leaving) -> None:
    from flink_gpu_discovery import arguments, cli, interrupts

    interrupts.ignore_relayed_signals()
    if os.geteuid() != 0:
        raise PermissionRefusedError(
            f"this program confines task executors as root, and runs as uid {os.geteuid()}",
            "call flink-gpu-discovery --isolate, which calls it through sudo",
        )
    _check_code()
    request = arguments.parse_privileged(words)
    if request.command == "allocate":
        _check_output()
        import flink_gpu_discovery.isolation.v2
        import flink_gpu_discovery.operations.confined_grant  # noqa: F401
    context = _context(request, environment, host)
    leaving.finish()
    reset_process()
    interrupts.limit(context.deadline.remaining() + _GRACE_SECONDS)
    cli.operate(request, context)


def _context(request: Request, environment: Mapping[str, str], host: Host) -> Context:
    from flink_gpu_discovery import callers
    from flink_gpu_discovery.operations.context import Context
    from flink_gpu_discovery.options import settle
    from flink_gpu_discovery.processes import Processes

    processes = Processes(host)
    caller = callers.through_sudo(host, processes, environment)
    request.given.add("isolate", "yes", "--isolate")
    options = settle(request.given, _settings(f"{host.etc}/flink-gpu-discovery.conf"), host.run)
    deadline = Deadline(start=processes.started_at(caller.first), seconds=options.deadline_seconds)
    return Context(
        host=host,
        caller=caller,
        environment=_ENVIRONMENT,
        options=options,
        deadline=deadline,
        processes=processes,
    )


def _check_output() -> None:
    """The answer is written under the lock, so not to what the caller could let block in spite of all signals."""
    kind = os.fstat(1).st_mode
    if stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or stat.S_ISCHR(kind):
        return
    from flink_gpu_discovery import mounts

    if not stat.S_ISREG(kind) or mounts.is_fuse(1):
        raise UsageError("standard output is no pipe, socket, terminal or plain file", "read the answer from a pipe")


def _settings(path: str) -> Given:
    """Root's own settings. Without a list of ``resources`` there is the one that has no name of its own."""
    from flink_gpu_discovery import ownership, settings

    is_there = os.path.lexists(path)
    if is_there:
        ownership.check(os.path.dirname(path))
        try:
            ownership.check(path)
        except PermissionRefusedError as error:
            raise SettingsError(error.what, error.mend) from error
    given = settings.load(path, required=is_there)
    if not given.has("resources"):
        given.add("resources", given.text("resource") or "gpu", path)
    return given


def _check_code() -> None:
    """Code that others may change would let them be root; by then it is too late, but it is said."""
    from flink_gpu_discovery import ownership

    package = os.path.dirname(os.path.realpath(__file__))
    release = os.path.dirname(package)
    ownership.check(package)
    folders = [folder for folder in (f"{release}/bin", package) if os.path.isdir(folder)]
    ownership.check(folders[0])
    for folder in folders:
        for entry in os.scandir(folder):
            ownership.check_status(entry.path, entry.stat(follow_symlinks=False), entry.path)
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
    for entry in os.scandir(release):
        if entry.name.endswith(".py"):  # pynvml
            ownership.check(entry.path)
