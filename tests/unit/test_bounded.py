"""Children that hang, crash, babble or leave others behind."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from flink_gpu_discovery import bounded
from flink_gpu_discovery.errors import TryAgainError


def test_an_answer_comes_back_whole() -> None:
    answer = bounded.ask("it", lambda: _write(1, b"x" * 300_000 + b"\n"), 10)
    assert (answer.status, len(answer.output), answer.errors, answer.flooded) == (0, 300_001, "", False)


def test_both_streams_and_the_status_come_back(tmp_path: Path) -> None:
    tool = tmp_path / "tool"
    tool.write_text("#!/bin/sh\necho out $1\necho err >&2\nenv\nexit 9\n")
    tool.chmod(0o755)
    answer = bounded.run_tool("tool", str(tool), ("word",), 10)
    assert answer.status == 9
    assert answer.output.startswith("out word\n")
    assert answer.errors == "err\n"
    assert {line.partition("=")[0] for line in answer.output.splitlines()[1:]} <= {
        "PATH",
        "LC_ALL",
        "PWD",
        "_",
        "SHLVL",
    }


def test_a_crash_is_told_by_its_signal() -> None:
    answer = bounded.ask("it", lambda: os.kill(os.getpid(), signal.SIGSEGV), 10)
    assert answer.status == -signal.SIGSEGV


def test_an_exception_in_the_child_stays_there() -> None:
    answer = bounded.ask("it", lambda: 1 // 0, 10)  # type: ignore[arg-type]
    assert answer.status == 127
    assert "ZeroDivisionError" in answer.errors


def test_a_tool_that_cannot_be_started_is_told_apart() -> None:
    answer = bounded.run_tool("tool", "/nowhere/tool", (), 10)
    assert answer.status == 127
    assert "FileNotFoundError" in answer.errors


@pytest.mark.parametrize("ignored", [[], [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]], ids=["hang", "stubborn"])
def test_a_hanging_child_costs_no_more_than_the_limit(ignored: list[signal.Signals], tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def hang() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        note.write_text(str(os.getpid()))
        time.sleep(60)

    start = time.monotonic()
    with pytest.raises(TryAgainError, match="it did not answer in time"):
        bounded.ask("it", hang, 0.5)
    assert 0.5 <= time.monotonic() - start < 2
    _assert_gone(int(note.read_text()))


def test_a_grandchild_that_keeps_the_pipes_open_is_not_waited_for(tmp_path: Path) -> None:
    note = tmp_path / "pid"

    def leave_one_behind() -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        note.write_text(str(pid))
        _write(1, b"done\n")

    start = time.monotonic()
    answer = bounded.ask("it", leave_one_behind, 20)
    assert (answer.status, answer.output) == (0, "done\n")
    assert time.monotonic() - start < 5
    _assert_gone(int(note.read_text()))


def test_a_flood_ends_the_child() -> None:
    def flood() -> None:
        while True:
            os.write(1, b"y\n" * 4096)

    answer = bounded.ask("it", flood, 20)
    assert answer.flooded
    assert len(answer.output) < 2 * 1024 * 1024


def test_the_child_holds_none_of_the_callers_descriptors() -> None:
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        answer = bounded.ask("it", lambda: os.execv("/bin/ls", ["ls", "/proc/self/fd"]), 10)
    finally:
        os.close(reader)
        os.close(writer)
    assert sorted(answer.output.split()) == ["0", "1", "2", "3"]  # 3 is the listing's own


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _assert_gone(pid: int) -> None:
    """Killed, whether reaped or not."""
    for _ in range(200):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z"):
                return
        except FileNotFoundError:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} still runs")
