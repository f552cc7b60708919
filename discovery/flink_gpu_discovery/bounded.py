"""Run a query in a child process that may hang, crash or babble without harming its caller.

A driver call or ``nvidia-smi`` can hang in uninterruptible sleep, where not even SIGKILL ends it. So the child
is never waited for beyond the limit, and it holds none of the caller's descriptors: Flink reads the script's
pipes to their end.
"""

from __future__ import annotations

import os
import select
import time

from flink_gpu_discovery.errors import SystemRefusedError, TryAgainError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

_SIGKILL = 9  # asm-generic/signal.h; importing ``signal`` takes as long as the rest of the call
_LARGEST_OUTPUT_BYTES = 1024 * 1024
_PAUSE_SECONDS = 0.02
_LAST_PAUSE_SECONDS = 0.0002  # its pipes are closed, so it ends just now


class Answer:
    """How a child ended: its exit status (negative: the signal), what it wrote, whether that was too much."""

    __slots__ = ("errors", "flooded", "output", "status")

    def __init__(self, *, status: int, output: str, errors: str, flooded: bool) -> None:
        self.status: Final = status
        self.output: Final = output
        self.errors: Final = errors
        self.flooded: Final = flooded


def ask(name: str, work: Callable[[], None], seconds: float) -> Answer:
    """Run ``work`` in a child that writes its answer to descriptor 1; or ``TryAgainError`` after ``seconds``.

    ``work`` may replace the child's program. Output beyond 1 MiB ends the child.
    """
    end = time.monotonic() + seconds
    pipes: list[int] = []
    child = 0
    try:
        pipes += os.pipe()
        pipes += os.pipe()
        child = os.fork()
        if child == 0:
            _be_child(work, pipes[1], pipes[3])
        for writing_end in (3, 1):
            os.close(pipes.pop(writing_end))
        return _collect(name, child, pipes[0], pipes[1], end)
    except OSError as error:
        raise SystemRefusedError(f"{name} can't be asked: {error.strerror}", "see the limits (ulimit -n -u)") from error
    finally:
        if child:
            _kill(child)
        for descriptor in pipes:
            os.close(descriptor)


def run_tool(name: str, path: str, arguments: tuple[str, ...], seconds: float) -> Answer:
    """Run a vendor's tool with a fixed environment, bounded like ``ask``; status 127 if it can't be started."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
    return ask(name, lambda: os.execve(path, [path, *arguments], environment), seconds)  # noqa: S606


def _be_child(work: Callable[[], None], output: int, errors: int) -> None:
    status = 127
    try:
        os.dup2(output, 1)
        os.dup2(errors, 2)
        os.setsid()  # a process group of its own, which can be killed as a whole
        os.umask(0o077)
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        _close_from(3)
        work()
        status = 0
    except BaseException as error:
        os.write(2, f"{type(error).__name__}: {error}\n".encode("utf-8", "backslashreplace"))
    finally:
        os._exit(status)


def _close_from(first: int) -> None:
    """What is open, by name: the limit that os.closerange would count up to can be a billion."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) >= first:
            try:
                os.close(int(name))
            except OSError:
                pass  # the descriptor of the listing itself


class _Pipe:
    """What a child wrote into one of its pipes so far."""

    __slots__ = ("content", "descriptor", "open")

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor: Final = descriptor
        self.content = bytearray()
        self.open = True

    def drain(self) -> None:
        """Take what is there, up to the limit."""
        while self.open and not self.flooded:
            try:
                piece = os.read(self.descriptor, 65536)
            except BlockingIOError:
                return
            self.content += piece
            self.open = bool(piece)

    @property
    def flooded(self) -> bool:
        return len(self.content) > _LARGEST_OUTPUT_BYTES

    def text(self) -> str:
        return self.content.decode("utf-8", "replace")


def _collect(name: str, child: int, output_read: int, errors_read: int, end: float) -> Answer:
    pipes = (_Pipe(output_read), _Pipe(errors_read))
    while True:
        _wait_for_output(pipes, end)
        status = _ended(child)
        for pipe in pipes:
            pipe.drain()
        flooded = any([pipe.flooded for pipe in pipes])
        if status is not None or flooded:
            return Answer(
                status=-_SIGKILL if status is None else status,
                output=pipes[0].text(),
                errors=pipes[1].text(),
                flooded=flooded,
            )
        if time.monotonic() >= end:
            raise TryAgainError(f"{name} did not answer in time", "see to the driver ('dmesg'), then try again")


def _ended(child: int) -> int | None:
    """Its exit status (negative: the signal), None if it runs; it isn't reaped, so that its PID stays its own.

    Nothing waits, since the child may be unkillable. A caller that ignores SIGCHLD leaves no status behind; what
    was written must then speak for itself.
    """
    try:
        found = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0
    if found is None:
        return None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _wait_for_output(pipes: tuple[_Pipe, _Pipe], end: float) -> None:
    """Sleep until a pipe has something, or for a moment: a child may end while a grandchild keeps the pipes."""
    left = max(0.0, end - time.monotonic())
    if not any([pipe.open for pipe in pipes]):
        time.sleep(min(_LAST_PAUSE_SECONDS, left))
        return
    poll = select.poll()
    for pipe in pipes:
        if pipe.open:
            poll.register(pipe.descriptor, select.POLLIN)
    poll.poll(min(_PAUSE_SECONDS, left) * 1000)


def _kill(child: int) -> None:
    """The child, and what it may have left behind in its group; then reap it, if it has gone."""
    for kill in (os.killpg, os.kill):  # it may not have its group yet
        try:
            kill(child, _SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass
    try:
        os.waitpid(child, os.WNOHANG)
    except ChildProcessError:
        pass
