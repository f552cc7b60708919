"""Run a command and leave no process behind: alone in a session of its own, or as a task executor's child."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.support.executor import TaskExecutor
from tests.support.script import PATH, Result

_SECONDS = 30  # a call ends after 8 s at the latest, by its own deadline
MEMBER_UID, MEMBER_GID = 54321, 54322  # somebody without a name


class Parent(TaskExecutor):
    """A task executor that also calls other programs than the script, as their parent."""

    def __enter__(self) -> Parent:
        return self

    def run(self, command: Sequence[str]) -> Result:
        """One call from start to end, which is when nobody holds its pipes any more."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        result = self.finish()
        left = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text()
        assert not left, f"processes {left} were left behind by {command}"
        return result


def run_alone(command: Sequence[str], *, as_member: bool = False) -> Result:
    """Run it in a session of its own, and see that nothing of that is left; ``as_member`` under another uid."""
    with _popen(command, as_member=as_member) as process:
        try:
            out, err = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert not _group_lives(process.pid), f"a process was left behind by {command}"
    return Result(process.returncode, out.decode(), err.decode())


@contextmanager
def member() -> Iterator[int]:
    """The PID of a process of a user who has but a group in common with the ledger's folder."""
    with _popen(["sleep", "600"], as_member=True) as process:
        try:
            yield process.pid
        finally:
            process.kill()


def _popen(command: Sequence[str], *, as_member: bool) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": PATH},
        cwd="/",
        start_new_session=True,
        user=MEMBER_UID if as_member else None,
        group=MEMBER_GID if as_member else None,
        extra_groups=[] if as_member else None,
    )


def _group_lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
