"""A process that stands for a task executor: it lives on, and calls the discovery script as its parent."""

from __future__ import annotations

import json
import subprocess
import sys
from types import TracebackType

from tests.support.script import PATH, SCRIPT, Result

# Reads one JSON list of words a line, runs the script with them, answers one JSON line.
_BODY = """
import json, subprocess, sys
for line in sys.stdin:
    done = subprocess.run(json.loads(line), capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class TaskExecutor:
    """``with TaskExecutor() as executor: executor.call("2", …)``; ended by SIGKILL at the latest on leaving."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _BODY],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": PATH},
            text=True,
        )

    @property
    def pid(self) -> int:
        """Its process id, which is the owner's."""
        return self._process.pid

    def start(self, *words: str) -> None:
        """Begin a call whose answer ``finish`` takes; lets several executors call at once."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([str(SCRIPT), *words]) + "\n")
        self._process.stdin.flush()

    def finish(self) -> Result:
        """The answer of the call begun by ``start``."""
        assert self._process.stdout is not None
        return Result(*json.loads(self._process.stdout.readline()))

    def call(self, *words: str) -> Result:
        """One call from start to end."""
        self.start(*words)
        return self.finish()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()  # nothing, if it has ended already
        self._process.wait(timeout=10)

    def __enter__(self) -> TaskExecutor:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
