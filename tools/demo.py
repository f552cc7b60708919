"""`make demo`: task executors on this host get disjoint GPUs from the real script.

Each task executor is a process that calls the script as Flink's GPU driver does. The GPUs are this host's, or
simulated ones where it has fewer than two. Every claim that is printed was checked.
"""

from __future__ import annotations

import json
import sys
import tempfile
from contextlib import ExitStack

from tests.support.executor import TaskExecutor
from tests.support.script import SCRIPT, run
from tools import demo_isolation

_MOST_EXECUTORS = 3


def main() -> int:
    """Run the story; 1 if anything isn't as it should be."""
    with tempfile.TemporaryDirectory(prefix="flink-gpu-demo-") as folder, ExitStack() as stack:
        try:
            _tell(_Story(f"{folder}/ledger", stack))
            demo_isolation.show(folder)
        except (_WrongError, demo_isolation.DemoError) as error:
            print(f"demo: {error}", file=sys.stderr)
            return 1
    return 0


class _WrongError(Exception):
    """Something did not come out as it must."""


class _Story:
    """One host: its backend, its ledger, the task executors that were started."""

    def __init__(self, ledger: str, stack: ExitStack) -> None:
        self._stack = stack
        self._running: list[TaskExecutor] = []
        self.ledger = ledger
        self.backend, self.gpus = _backend()
        self.amount = 2 if self.gpus >= 2 * _MOST_EXECUTORS else 1
        self.arguments = ("--backend", self.backend, "--coordinate", "--check-dead", "--ledger", ledger)

    def start(self) -> TaskExecutor:
        """A new task executor; it ends with the demo at the latest."""
        executor = self._stack.enter_context(TaskExecutor())
        self._running.append(executor)
        return executor

    def end_all(self) -> None:
        """SIGKILL to all that still run."""
        for executor in self._running:
            executor.kill()

    def ask(self, name: str, executor: TaskExecutor, *, expect: int = 0) -> set[str]:
        """Call the script as Flink does, show the answer, return the indexes."""
        answer = executor.call(str(self.amount), *self.arguments)
        print(f"  {name} (pid {executor.pid}): {answer.out.strip() or f'exit {answer.code}'}")
        for line in answer.err.splitlines():
            print(f"    {line}")
        _check(answer.code == expect, f"{name} ended with {answer.code} instead of {expect}")
        return set(answer.out.strip().split(",")) if answer.out else set()


def _tell(story: _Story) -> None:
    print(f"\n$ {SCRIPT.name} {story.amount} {' '.join(story.arguments)}\n")
    executors = [story.start() for _ in range(story.gpus // story.amount)][:_MOST_EXECUTORS]
    given = [story.ask(f"TaskManager {number}", executor) for number, executor in enumerate(executors, 1)]
    _check(len(set().union(*given)) == story.amount * len(executors), f"not disjoint: {given}")
    print("  -> disjoint\n")

    print("TaskManager 1 asks again and gets the same GPUs:")
    _check(story.ask("TaskManager 1", executors[0]) == given[0], "a repeated call got other GPUs")

    if story.gpus < story.amount * (len(executors) + 1):
        print("\nOne TaskManager too many gets an error instead of somebody's GPUs:")
        story.ask(f"TaskManager {len(executors) + 1}", story.start(), expect=69)

    print("\nTaskManager 1 is ended with SIGKILL, and its successor takes over:")
    executors[0].kill()
    successor = story.ask("TaskManager 1'", story.start())
    _check(not successor & set().union(*given[1:]), "the successor got a live owner's GPU")

    print(f"\n$ {SCRIPT.name} status")
    print(run("status", "--ledger", story.ledger, "--backend", story.backend).out)
    print(f"$ {SCRIPT.name} reclaim    (after all of them have ended)")
    story.end_all()
    print(run("reclaim", "--ledger", story.ledger).out.rstrip())
    left = json.loads(run("status", "--json", "--ledger", story.ledger).out)["records"]
    _check(left == [], f"the ledger still holds {left}")
    print("  -> the ledger is empty")


def _backend() -> tuple[str, int]:
    """This host's GPUs where there are two at least, else six simulated ones."""
    real = run("inventory", "--json")
    if real.code == 0:
        seen = json.loads(real.out)
        healthy = [gpu for gpu in seen["gpus"] if gpu["visible"] and not gpu["fault"]]
        if len(healthy) >= 2:  # noqa: PLR2004
            print(f"This host has {len(healthy)} GPUs, seen through {seen['backend']}.")
            return seen["backend"], len(healthy)
    print("No two GPUs here, so six are simulated.")
    return "simulated:6", 6


def _check(condition: bool, otherwise: str) -> None:
    if not condition:
        raise _WrongError(otherwise)


if __name__ == "__main__":
    sys.exit(main())
