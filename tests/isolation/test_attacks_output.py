"""Standard output that takes no answer: the call is undone, and nobody else waits for it."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.isolation.agent import Agent
from tests.isolation.lab import OTHER, Lab
from tests.isolation.privileged_calls import (
    ASK,
    ONE_VIEW,
    SUDO,
    held,
    helpers,
    opens,
    records,
    unchanged,
    wait_for,
)

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

# Leaves the call's standard output in ``out``.
SINKS = {
    "a pipe that nobody reads": "r, out = os.pipe(); os.close(r)",
    "a full pipe": (
        "r, out = os.pipe(); os.set_blocking(out, False)\n"
        "try:\n"
        "    while True: os.write(out, b'x' * 4096)\n"
        "except BlockingIOError: os.set_blocking(out, True)"
    ),
    # A write of eight bytes adds them up as a number, and waits while that is too large; poll(2) says it is writable.
    "a counter": "out = ctypes.CDLL(None).eventfd(0, 0); os.write(out, (2**64 - 3).to_bytes(8, sys.byteorder))",
    "a full device": "out = os.open('/dev/full', os.O_WRONLY)",
    "what is open for reading": "out = os.open('/dev/null', os.O_RDONLY)",
    "a full socket": (
        "a, b = socket.socketpair(); a.setblocking(False)\n"
        "try:\n"
        "    while True: a.send(b'x' * 4096)\n"
        "except BlockingIOError: a.setblocking(True)\n"
        "out = a.fileno()"
    ),
}


def begin_into(executor: Agent, sink: str, *words: str) -> None:
    executor.evaluate(
        f"import subprocess\n{sink}\n"
        f"process = subprocess.Popen({list(words)!r}, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE,"
        " text=True)\nresult = process.pid"
    )


def finish(executor: Agent) -> Any:
    return executor.evaluate("[process.communicate(timeout=15)[1], process.returncode]")


@pytest.mark.parametrize("sink", [*SINKS])
def test_an_answer_that_is_not_taken_is_undone(host: Lab, executor: Agent, sink: str) -> None:
    begin_into(executor, SINKS[sink], *SUDO, "allocate", "4")
    err, code = finish(executor)
    expected = (64,) if sink == "a counter" else (74, 75)
    assert (code in expected, err.count("\n")) == (True, 1), (code, err)
    unchanged(host, executor)


@pytest.mark.parametrize("sink", ["a full pipe", "a full socket"])
def test_an_answer_that_is_not_taken_keeps_nobody_waiting(host: Lab, executor: Agent, sink: str) -> None:
    begin_into(executor, SINKS[sink], *SUDO, "allocate", "4")
    wait_for(lambda: records(host), "record")
    begun = time.monotonic()
    other = host.executor(OTHER)
    assert other.call(*ASK).out == "0,1\n"
    assert time.monotonic() - begun < 1.5
    assert finish(executor)[1] in (74, 75)
    assert held(host) == {other.pid: "0,1"}


def test_a_closed_standard_output_is_an_error(host: Lab, executor: Agent) -> None:
    done = executor.call("/bin/sh", "-c", f"exec {' '.join(ASK)} >&-")
    assert (done.code, done.out) == (74, "")
    unchanged(host, executor)


def test_without_standard_streams_nothing_of_it_is_overwritten(host: Lab, executor: Agent) -> None:
    done = executor.call("/bin/sh", "-c", f"exec {' '.join(ASK)} <&- >&- 2>&-")
    assert done.code == 74
    unchanged(host, executor)
    done = executor.call("/bin/sh", "-c", f"exec {' '.join(SUDO)} allocate 2 <&- >&- 2>&-")
    assert done.code in (0, 74)  # sudo itself opens /dev/null in their places
    assert opens(executor) == ("01" if held(host) else "0123")


def test_an_error_that_nobody_reads_ends_the_program(host: Lab, executor: Agent) -> None:
    begin_into(executor, SINKS["a full pipe"], "/bin/sh", "-c", f"exec {' '.join(SUDO)} allocate x 2>&1")
    wait_for(lambda: helpers(host), "helper")
    wait_for(lambda: not helpers(host), "end of the helper", 2)
    assert finish(executor)[1] == 64


@pytest.mark.parametrize("sink", ["a full pipe", "a counter"])
def test_a_table_that_nobody_reads_ends_with_the_deadline(host: Lab, executor: Agent, sink: str) -> None:
    host.settings("[flink-gpu-discovery]\ndeadline = 0.5\n")
    begin_into(executor, SINKS[sink], *SUDO, "status")
    wait_for(lambda: helpers(host), "helper")
    wait_for(lambda: not helpers(host), "end of the helper", 3)
