"""A Python process beside this one that is told what to do in lines, and answers each with a line."""

from __future__ import annotations

import subprocess
import sys
from types import TracebackType

from tests.support.script import PATH


class Companion:
    """``with Companion(source) as companion: companion.ask(line)``; ended by SIGKILL at the latest on leaving."""

    def __init__(self, source: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", source],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": PATH},
            text=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def tell(self, line: str) -> None:
        """Say a line; ``hear`` takes the answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """The next line that it says."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def ask(self, line: str) -> str:
        """Say a line, and hear the answer."""
        self.tell(line)
        return self.hear()

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone."""
        self._process.kill()  # nothing, if it has ended already
        self._process.wait(timeout=10)

    def __enter__(self) -> Companion:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
