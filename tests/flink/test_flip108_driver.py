"""The script serves FLIP-108's own protocol: allocate at opening, deallocateAll at closing."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from . import flip108_driver
from .script import Script

pytestmark = pytest.mark.timeout(60)

CLOSE_LIMIT_SECONDS = 15.0


class TaskExecutor:
    """A process of its own that holds GPUs through the driver until it is closed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.gpus = frozenset(filter(None, process.stdout.readline().strip().split(",")))

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> tuple[int, str]:
        """End the task executor in an orderly way; return its exit status and its errors."""
        _, errors = self._process.communicate(timeout=CLOSE_LIMIT_SECONDS)
        return self._process.returncode, errors

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def task_executor(script: Script, amount: int) -> Iterator[TaskExecutor]:
    options = ["--coordinate", "--check-dead", "--backend", "simulated:4", "--ledger", str(script.ledger)]
    command = [sys.executable, flip108_driver.__file__, str(script.path), str(amount), *options]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield TaskExecutor(process)
        finally:
            process.kill()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path / "ledger")


def test_two_task_executors_hold_disjoint_gpus_until_each_closes(script: Script) -> None:
    with task_executor(script, 2) as first, task_executor(script, 2) as second:
        assert first.gpus | second.gpus == {"0", "1", "2", "3"}
        assert script.gpus_by_owner() == {first.pid: first.gpus, second.pid: second.gpus}

        assert first.close() == (0, "")
        assert script.gpus_by_owner() == {second.pid: second.gpus}

        assert second.close() == (0, "")
        assert script.records() == ()


def test_a_task_executor_too_many_fails_to_start_and_leaves_the_ledger_as_it_was(script: Script) -> None:
    with ExitStack() as stack:
        stack.enter_context(task_executor(script, 3))
        before = script.ledger.read_bytes()
        refused = stack.enter_context(task_executor(script, 2))

        assert refused.gpus == frozenset()
        status, errors = refused.close()
        assert status == 1
        assert errors.startswith("allocate ended with 69: ")
        assert script.ledger.read_bytes() == before


def test_check_dead_takes_over_the_gpus_of_a_task_executor_that_never_closed(script: Script) -> None:
    with task_executor(script, 4) as failed, ExitStack() as stack:
        failed.kill()
        successor = stack.enter_context(task_executor(script, 4))

        assert successor.gpus == failed.gpus
        assert script.gpus_by_owner() == {successor.pid: successor.gpus}
