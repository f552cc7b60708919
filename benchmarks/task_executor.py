"""The process that stands for a task executor in the races: it calls the discovery script as its parent.

    /usr/bin/python3 -IS task_executor.py [FOLDER OF THE PACKAGE]

It reads one request a line, fields separated by NUL: the signal to send to the call (0 for none), after how many
milliseconds, and the words to run. It answers each with one line, a tuple in Python's spelling: exit status
(negative: the signal that ended it), milliseconds from start to end, standard output, standard error. At the end
of its input it ends.

With a folder it loads the package from there once, and a call is a fork that goes on as the command with those
words (the script's own name left out): the same system calls on the ledger by a process of its own whose parent is
this one, without the start of a Python each time.

Only what every Python loads anyway is imported, since executors are started by the thousand.
"""

from __future__ import annotations

import os
import select
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Pipe = tuple[int, int]
    Begin = Callable[[list[str], Pipe, Pipe], int]

_LARGEST_OUTPUT_BYTES = 65536  # a pipe holds no more (pipe(7)), and it is read once the call has ended
_CRASHED = 99
_IMPORTED_ON_THE_WAY = (
    "gpus.simulated",
    "operations.allocate",
    "operations.deallocate",
    "operations.grant",
    "operations.reclaim",
    "operations.status",
    "report",
)


def main() -> None:
    """Serve requests until there are no more."""
    begin = _starter(sys.argv[1]) if len(sys.argv) > 1 else _begin_script
    for line in sys.stdin:
        signal_number, after, *words = line.rstrip("\n").split("\0")
        answer = _call(begin, words, int(signal_number), float(after))
        os.write(1, f"{answer!a}\n".encode("ascii"))


def _call(begin: Begin, words: list[str], signal_number: int, after: float) -> tuple[int, float, str, str]:
    output, errors = os.pipe(), os.pipe()
    started = time.monotonic()
    child = begin(words, output, errors)
    os.close(output[1])
    os.close(errors[1])
    if signal_number and not _ends_within(child, after):
        os.kill(child, signal_number)  # it can't be another process: nobody has waited for it yet
    _, status = os.waitpid(child, 0)
    taken = (time.monotonic() - started) * 1000
    return os.waitstatus_to_exitcode(status), taken, _drain(output[0]), _drain(errors[0])


def _ends_within(child: int, milliseconds: float) -> bool:
    descriptor = os.pidfd_open(child)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(milliseconds))
    finally:
        os.close(descriptor)


def _drain(descriptor: int) -> str:
    """What is in the pipe, not waiting for whatever else may hold its other end."""
    os.set_blocking(descriptor, False)
    try:
        return os.read(descriptor, _LARGEST_OUTPUT_BYTES).decode("utf-8", "backslashreplace")
    except BlockingIOError:
        return ""
    finally:
        os.close(descriptor)


def _begin_script(words: list[str], output: Pipe, errors: Pipe) -> int:
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, output[1], 1),
        (os.POSIX_SPAWN_DUP2, errors[1], 2),
    ]
    return os.posix_spawn(words[0], words, os.environ, file_actions=actions)


def _starter(package_folder: str) -> Begin:
    """Load all that the commands import on their way, so that a fork has it."""
    sys.path.insert(0, package_folder)
    from flink_gpu_discovery import cli, host  # noqa: PLC0415 - it is only now that it can be found

    for name in _IMPORTED_ON_THE_WAY:
        __import__(f"flink_gpu_discovery.{name}")

    def begin(words: list[str], output: Pipe, errors: Pipe) -> int:
        child = os.fork()
        if child:
            return child
        code = _CRASHED
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output[1], 1)
            os.dup2(errors[1], 2)
            for descriptor in (*output, *errors):  # what reads them must be this one's parent alone
                os.close(descriptor)
            code = cli.main(words, os.environ, host.Host())
        except BaseException as error:
            os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "replace"))
        finally:
            os._exit(code)

    return begin


if __name__ == "__main__":
    main()
