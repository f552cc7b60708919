"""How a play ended, as a whole and task by task."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

Status = Literal["ok", "changed", "skipped", "failed", "unreachable"]


@dataclass(frozen=True)
class TaskResult:
    """How one task, or handler, ended on one host; a loop is one task.

    ``msg`` is what the module said, ``diff`` a list of what ``--diff`` shows (``before``, ``after``, their headers, or
    ``prepared``). ``start`` is a point in time, by the control node's clock. ``ignored``: failed, and allowed to.
    """

    host: str
    task: str
    action: str
    handler: bool
    status: Status
    ignored: bool
    msg: str
    diff: list[dict[str, Any]]
    start: float
    seconds: float


@dataclass(frozen=True)
class Outcome:
    """Exit code, output, what ended on which host in which order, and how long all of it took."""

    rc: int
    stdout: str
    stderr: str
    results: tuple[TaskResult, ...]
    seconds: float

    def of(self, host: str) -> Outcome:
        """The same with the results of one host alone."""
        return replace(self, results=tuple(result for result in self.results if result.host == host))

    def must_succeed(self) -> Outcome:
        """Itself, unless something failed, which is shown."""
        assert self.rc == 0, f"the play ended with {self.rc}:\n{self.stdout}\n{self.stderr}"
        return self

    @property
    def killed(self) -> bool:
        """Whether it was, before the task that ``kill_at`` names."""
        return self.rc == -signal.SIGKILL

    @property
    def tasks(self) -> int:
        """How many tasks ran, which the skipped ones did not."""
        return sum(result.status != "skipped" for result in self.results)

    @property
    def changed(self) -> list[str]:
        """Names of the tasks, and handlers, that changed something or say that they would."""
        return [result.task for result in self.results if result.status == "changed"]

    @property
    def failures(self) -> list[str]:
        """Messages of the tasks that failed and may not, also of those that were rescued, and of hosts out of reach."""
        failed = [result for result in self.results if result.status in ("failed", "unreachable")]
        return [result.msg for result in failed if not result.ignored]

    @property
    def diffs(self) -> dict[str, list[dict[str, Any]]]:
        """Of each task that has any, by its name."""
        return {result.task: result.diff for result in self.results if result.diff}

    def named(self, task: str) -> TaskResult:
        """The last result of the task with that name; a role's name may be left out."""
        found = [result for result in self.results if task in (result.task, result.task.partition(" : ")[2])]
        assert found, f"no task {task!r} among {[result.task for result in self.results]}"
        return found[-1]


def read_results(path: Path) -> tuple[TaskResult, ...]:
    """From the file of the callback plugin ``task_results``; of a play that failed early there is none."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return tuple(TaskResult(**json.loads(line)) for line in lines)
