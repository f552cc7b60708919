"""A process that stands for a task executor: it lives on, and calls the discovery script as its parent."""

from __future__ import annotations

import json

from tests.support.companion import Companion
from tests.support.script import SCRIPT, Result

# Reads one JSON list of words a line, runs the script with them, answers one JSON line.
_BODY = """
import json, subprocess, sys
for line in sys.stdin:
    done = subprocess.run(json.loads(line), capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class TaskExecutor(Companion):
    """``with TaskExecutor() as executor: executor.call("2", …)``; its process id is the owner's."""

    def __init__(self) -> None:
        super().__init__(_BODY)

    def start(self, *words: str) -> None:
        """Begin a call whose answer ``finish`` takes; lets several executors call at once."""
        self.tell(json.dumps([str(SCRIPT), *words]))

    def finish(self) -> Result:
        """The answer of the call begun by ``start``."""
        return Result(*json.loads(self.hear()))

    def call(self, *words: str) -> Result:
        """One call from start to end."""
        self.start(*words)
        return self.finish()

    def __enter__(self) -> TaskExecutor:
        return self
