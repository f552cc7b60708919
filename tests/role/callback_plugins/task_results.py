"""Write down how each task of a play ended, one JSON line a task and host; on demand, die before a task starts."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from ansible.playbook.handler import Handler
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: task_results
type: aggregate
short_description: Results of tasks as JSON lines
description:
  - Appends one line for each task and host. Loops are one task.
options:
  file:
    description: The file that the lines are appended to.
    type: path
    required: true
    env:
      - name: TASK_RESULTS_FILE
  kill_at:
    description:
      - The play is killed before this task is started.
      - Tasks are counted from 1, those of all hosts together, also those that will be skipped.
    type: int
    default: 0
    env:
      - name: TASK_RESULTS_KILL_AT
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]  # Ansible has no types
    """What ``Outcome`` reads."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "task_results"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._starts: dict[tuple[str, str], float] = {}
        self._started = 0

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        """In the main process, before the worker of the task is forked."""
        self._started += 1
        if self._started == self.get_option("kill_at"):
            os.kill(os.getpid(), signal.SIGKILL)
        self._starts[host.get_name(), task._uuid] = time.time()

    def v2_runner_on_ok(self, result: Any) -> None:
        """As the module says."""
        self._write(result, "changed" if result.is_changed() else "ok")

    def v2_runner_on_skipped(self, result: Any) -> None:
        """By its condition, or by the module itself."""
        self._write(result, "skipped")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Also where a ``rescue`` follows."""
        self._write(result, "failed", ignored=ignore_errors)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """The connection, not the task."""
        self._write(result, "unreachable")

    def _write(self, result: Any, status: str, *, ignored: bool = False) -> None:
        host, task, now = result.host.get_name(), result.task, time.time()
        start = self._starts.get((host, task._uuid), now)
        line = {
            "host": host,
            "task": result.task_name,
            "action": task.resolved_action or task.action,
            "handler": isinstance(task, Handler),
            "status": status,
            "ignored": ignored,
            "msg": _message(result.result),
            "diff": _diffs(result.result),
            "start": start,
            "seconds": now - start,
        }
        with Path(self.get_option("file")).open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line, default=str)}\n")


def _message(result: dict[str, Any]) -> str:
    """What the task says, or what the items of its loop say, one a line."""
    items = [item for item in result.get("results", []) if isinstance(item, dict)]
    told = [one["msg"] for one in (result, *items) if one.get("msg")]
    return "\n".join(text if isinstance(text, str) else json.dumps(text, default=str) for text in told)


def _diffs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Those of the task and of the items of its loop; a module may give one or a list of them."""
    items = [item for item in result.get("results", []) if isinstance(item, dict)]
    found = [one["diff"] for one in (result, *items) if one.get("diff")]
    return [diff for one in found for diff in (one if isinstance(one, list) else [one])]
