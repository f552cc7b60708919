"""The command line: the one module that prints and exits.

Writes with write(2) itself: standard output holds one whole line or nothing, and a failure to deliver it must be
told, so that the GPUs are taken back.
"""

from __future__ import annotations

import os
import sys

from flink_gpu_discovery import arguments, callers, interrupts, settings
from flink_gpu_discovery.errors import InputOutputError, SystemRefusedError, ToldError, TryAgainError
from flink_gpu_discovery.host import Deadline, Host
from flink_gpu_discovery.operations.context import Context
from flink_gpu_discovery.options import settle
from flink_gpu_discovery.processes import Processes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

    from flink_gpu_discovery.arguments import Request

_PROGRAM = "flink-gpu-discovery"
SAFE_UMASK = 0o022  # whatever the caller's: Python makes folders for the bytecode of what it imports
_LONGEST_LINE = 1000
_BLOCKED_SECONDS = 1.0
_PATIENCE_SECONDS = 0.2  # Flink reads its pipes only after the exit, so a full one stays full
_MOST_NOTES = 3  # with the longest lines still under 4 KiB, since Flink reads the pipe only after the exit


def run() -> NoReturn:
    """Be the program. Ends with ``os._exit``: everything is written, and tearing Python down takes time."""
    os._exit(main(sys.argv[1:], os.environ, Host()))


def main(words: list[str], environment: Mapping[str, str], host: Host) -> int:
    """Carry out one command and return its exit code (``errors`` lists them)."""
    return guarded(words, lambda: _dispatch(arguments.parse(words), environment, host))


def guarded(words: list[str], work: Callable[[], None]) -> int:
    """Do ``work``, tell what goes wrong in one line, and return the exit code."""
    os.umask(SAFE_UMASK)
    try:
        interrupts.raise_on_signals()
        return _carry_out(words, work)
    except ToldError as error:  # a signal while another error was told; no second one comes
        _write_line(error.what, error.mend)
        return error.exit_code


def _carry_out(words: list[str], work: Callable[[], None]) -> int:
    try:
        _secure_standard_streams()
        work()
    except ToldError as error:
        _write_line(error.what, error.mend)
        return error.exit_code
    except OSError as error:
        if "--debug" in words:
            _write_traceback()
        _write_line(f"the system refused: {error}", "see the limits (ulimit -a) and the file system")
        return SystemRefusedError.exit_code
    except Exception as error:
        if "--debug" in words:
            _write_traceback()
        _write_line(f"internal error: {type(error).__name__}: {error}", "run it with --debug and report this")
        return 1
    return 0


def _dispatch(request: Request, environment: Mapping[str, str], host: Host) -> None:
    if request.command == "help":
        from flink_gpu_discovery import usage

        _print(usage.text(request.topic))
    elif request.command == "version":
        from flink_gpu_discovery import __version__

        _print(f"{_PROGRAM} {__version__}\n")
    else:
        context = _context(request, environment, host)
        if context.options.isolate and os.geteuid() != 0 and _changes_something(request):
            from flink_gpu_discovery import launcher

            launcher.hand_over(request, environment)
        operate(request, context)


def _context(request: Request, environment: Mapping[str, str], host: Host) -> Context:
    config = request.given.text("config")
    stored = settings.load(config or f"{host.etc}/flink-gpu-discovery.conf", required=config is not None)
    options = settle(request.given, stored, host.run)
    processes = Processes(host)
    if "SUDO_UID" in environment and os.geteuid() == 0 and not options.owner_pid:
        caller = callers.through_sudo(host, processes, environment, same_user=False)
    else:
        caller = callers.direct(processes, options.owner_pid)
    deadline = Deadline(start=processes.started_at(caller.first), seconds=options.deadline_seconds)
    return Context(
        host=host,
        caller=caller,
        environment=environment,
        options=options,
        deadline=deadline,
        processes=processes,
    )


def _changes_something(request: Request) -> bool:
    """What an unprivileged caller can't do by itself where task executors are confined."""
    if request.command == "allocate":
        return request.amount > 0
    return request.command in ("deallocateAll", "release", "reclaim")


def operate(request: Request, context: Context) -> None:
    """Carry out a command that was read from somewhere, and print what it says."""
    as_json = request.given.has("json")
    if request.command == "allocate":
        _allocate(context, request.amount)
    elif request.command in ("deallocateAll", "release"):
        from flink_gpu_discovery.operations.deallocate import deallocate_all

        deallocate_all(context)
    elif request.command == "reclaim":
        _reclaim(context, as_json)
    elif request.command == "status":
        _status(context, as_json)
    elif request.command == "doctor":
        _doctor(context, request.given.has("quick"), as_json)
    else:
        _inventory(context, as_json)


def _allocate(context: Context, amount: int) -> None:
    from flink_gpu_discovery.operations.allocate import allocate

    notes = allocate(context, amount, lambda line: _deliver(line, context.deadline))
    if len(notes) > _MOST_NOTES:
        more = len(notes) - _MOST_NOTES + 1
        notes = (*notes[: _MOST_NOTES - 1], f"{more} more notes, see 'inventory --json'")
    _complain(notes)


def _reclaim(context: Context, as_json: bool) -> None:
    from flink_gpu_discovery import report
    from flink_gpu_discovery.operations.reclaim import reclaim

    outcome = reclaim(context)
    _complain(outcome.kept)
    _print(report.reclaimed(context.options.ledger, outcome.freed, outcome.liveness, as_json=as_json))


def _status(context: Context, as_json: bool) -> None:
    from flink_gpu_discovery import report
    from flink_gpu_discovery.operations.status import status

    now = status(context)
    _complain(now.notes)
    _print(
        report.status(context.options.ledger, now.records, now.liveness, now.seen, now.confinements, as_json=as_json)
    )


def _doctor(context: Context, quick: bool, as_json: bool) -> None:
    from flink_gpu_discovery import report
    from flink_gpu_discovery.operations import doctor

    findings = doctor.examine(context, quick=quick)
    _print(report.findings(findings, as_json=as_json))
    fault = doctor.first_fault(findings)
    if fault is not None:
        raise doctor.FaultError(fault)


def _inventory(context: Context, as_json: bool) -> None:
    from flink_gpu_discovery import report
    from flink_gpu_discovery.gpus import inventory
    from flink_gpu_discovery.visibility import narrow

    seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
    gpus, hidden = narrow(seen.gpus, context.environment)
    if not as_json:
        _complain([*seen.notes, *hidden])
    _print(report.inventory(seen, {gpu.uuid for gpu in gpus}, hidden, as_json=as_json))


def _secure_standard_streams() -> None:
    """Descriptors that are closed become ``/dev/null``, lest a file of ours takes their number.

    It is opened for reading, so that writing an answer to it fails.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY)  # takes the lowest free number


def _print(text: str) -> None:
    content = text.encode("utf-8", "surrogateescape")
    try:
        while content:
            content = content[os.write(1, content) :]
    except OSError as error:
        raise InputOutputError(
            f"cannot write to standard output: {error.strerror}", "open it and call again"
        ) from error


def _deliver(line: str, deadline: Deadline) -> None:
    """Print what fits any pipe at once, unless the pipe is full and nobody reads it."""
    if not _takes_more(1, deadline.remaining()):
        raise TryAgainError("nobody reads standard output, and its pipe is full", "read it and call again")
    interrupts.limit(_BLOCKED_SECONDS)  # some files block though poll(2) says that they won't
    _print(line)
    interrupts.lift_limit()


def _takes_more(descriptor: int, seconds: float = _PATIENCE_SECONDS) -> bool:
    """Whether a write would not block, now or in a moment."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLOUT)
    return bool(poll.poll(min(seconds, _PATIENCE_SECONDS) * 1000))


def _complain(lines: Sequence[str]) -> None:
    """One line per note on standard error."""
    for line in lines:
        _write_line(line, "")


def _write_line(what: str, mend: str) -> None:
    """Printable whatever stands in it, short enough with its mend whole, and never an error of its own."""
    end = f"; {_printable(mend)[: _LONGEST_LINE // 2]}" if mend else ""
    room = _LONGEST_LINE - len(end)
    start = _printable(what)
    if len(start) > room:
        start = start[: room - 3] + "..."
    try:
        if _takes_more(2):
            os.write(2, f"{_PROGRAM}: {start}{end}\n".encode("ascii"))
    except OSError:
        pass


def _printable(text: str) -> str:
    shown = "".join([character if character.isprintable() else "?" for character in text])
    return shown.encode("ascii", "backslashreplace").decode("ascii")


def _write_traceback() -> None:
    import traceback

    try:
        os.write(2, traceback.format_exc().encode("ascii", "backslashreplace"))
    except OSError:
        pass
