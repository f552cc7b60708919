"""A PID namespace with owners in it, as the tests hold it: every step bounded, nothing left behind.

In it PIDs can be reused at will: whoever may write ``/proc/sys/kernel/ns_last_pid`` chooses the next one.
"""

from __future__ import annotations

import functools
import json
import os
import select
import subprocess
import sys
import time
from types import TracebackType
from typing import Any

from tests.model.owner_process import COMMAND, COMMAND_SECONDS
from tests.model.values import Owner
from tests.support.script import PATH, ROOT, SCRIPT, Result

_STEP_SECONDS = COMMAND_SECONDS + 5
_UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
_UNSHARE_UNPRIVILEGED = (*_UNSHARE, "--user", "--map-root-user")
_PROBE = """echo 299 >/proc/sys/kernel/ns_last_pid && sh -c 'echo "$$"'; :"""


class CannotUnshareError(Exception):
    """This machine gives no PID namespace whose PIDs can be chosen; says why."""


@functools.cache
def unshare_words() -> tuple[str, ...]:
    """How to start a program in a namespace of its own here; or ``CannotUnshareError``."""
    reasons = []
    for words in (_UNSHARE, _UNSHARE_UNPRIVILEGED):
        try:
            probe = subprocess.run(
                [*words, "sh", "-c", _PROBE], capture_output=True, text=True, timeout=20, check=False
            )
        except OSError as error:
            raise CannotUnshareError(f"unshare can't be started: {error.strerror}") from error
        if probe.stdout == "300\n":
            return words
        reasons.append(f"'{' '.join(words)}': {(probe.stderr or probe.stdout).strip()}")
    raise CannotUnshareError("no PID can be chosen here: " + "; ".join(reasons))


class Namespace:
    """``with Namespace(path) as namespace: …``; ``path`` is the PATH of every command that is run in it."""

    def __init__(self, path: str = PATH) -> None:
        self._process = subprocess.Popen(
            [*unshare_words(), sys.executable, "-S", "-m", "tests.model.supervisor"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env={"PATH": path},
        )
        self._unread = b""
        self.boot_id, self.pid_namespace, self._uid = self._receive()

    def start(self, pid: int) -> Owner:
        """An owner under exactly this PID, which must be free."""
        start_time = self._ask("start", str(pid))
        return Owner(pid, start_time, self.boot_id, self.pid_namespace, self._uid, COMMAND)

    def call(self, pid: int, *words: str) -> Result:
        """The command, run by an owner."""
        return Result(*self._ask("call", str(pid), str(SCRIPT), *words))

    def operate(self, *words: str) -> Result:
        """The command, run by somebody who is no owner."""
        return Result(*self._ask("operate", str(SCRIPT), *words))

    def end_main_thread(self, pid: int) -> None:
        """The owner lives on in another thread."""
        self._ask("end_main_thread", str(pid))

    def kill(self, pid: int) -> None:
        """SIGKILL; the owner stays a zombie until ``reap``."""
        self._ask("kill", str(pid))

    def reap(self, pid: int) -> None:
        """A zombie goes, and its PID is free."""
        self._ask("reap", str(pid))

    def close(self) -> None:
        """End every process in it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()  # with --kill-child the namespace goes, too
            self._process.wait(timeout=10)

    def _ask(self, *words: str) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(words).encode() + b"\n")
        self._process.stdin.flush()
        return self._receive()

    def _receive(self) -> Any:
        """One line, within the time for a step."""
        assert self._process.stdout is not None
        descriptor, end = self._process.stdout.fileno(), time.monotonic() + _STEP_SECONDS
        while b"\n" not in self._unread:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(descriptor, 65536) if ready else b""
            if not piece:
                self._process.kill()
                raise AssertionError(f"the namespace {'has ended' if ready else f'is silent for {_STEP_SECONDS} s'}")
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return json.loads(line)

    def __enter__(self) -> Namespace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
