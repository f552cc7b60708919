"""The second part of `make demo`, where root is there: two task executors are confined, and try to open each GPU."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.companion import Companion
from tests.support.script import run

_NOBODY = 65534
_GPUS = 4
_NAME = "/dev/flink-gpu-demo"
_BODY = f"""
import errno, os, sys
os.setgroups([])
os.setresgid({_NOBODY}, {_NOBODY}, {_NOBODY})
os.setresuid({_NOBODY}, {_NOBODY}, {_NOBODY})
print("ready", flush=True)
for line in sys.stdin:
    try:
        os.close(os.open(line.strip(), os.O_RDWR))
        print("opened", flush=True)
    except OSError as error:
        print(errno.errorcode[error.errno], flush=True)
"""


class DemoError(Exception):
    """Something did not come out as it must."""


def show(folder: str) -> None:
    """Tell the story, or why it can't be told here."""
    if os.geteuid() != 0:
        print("\nAs root, this would also show how the kernel keeps them apart (--isolate).")
        return
    print("\nAs root, task executors can be confined: the kernel itself refuses to open any other GPU.")
    with ExitStack() as stack:
        major = stack.enter_context(_nodes())
        executors = [stack.enter_context(_Unprivileged()) for _ in range(2)]
        backend = f"simulated:{_GPUS},nodes={_NAME}%d"
        options = ("--isolate", "--backend", backend, "--ledger", f"{folder}/isolation/ledger")
        print(f"Simulated GPUs: {_NAME}0..{_GPUS - 1}, device numbers {major}:0..{_GPUS - 1} without a driver.")
        print(f"\n$ flink-gpu-discovery 2 {' '.join(options)}\n")
        for place, executor in enumerate(executors):
            answer = run("2", *options, "--owner-pid", str(executor.pid))
            if answer.code in (71, 77):
                print(f"  not possible here: {answer.err.strip()}")
                return
            _tell(executor, place, answer.out.strip(), {2 * place, 2 * place + 1})
        print("  -> each can open its own GPUs and no other (ENXIO: no driver behind it, EPERM: denied);")
        print("     what is printed counts among a TaskManager's own GPUs, as CUDA does once it sees no others")
        print("\n$ flink-gpu-discovery status --isolate\n")
        print(run("status", *options).out, end="")
        for executor in executors:
            executor.kill()
        if run("reclaim", *options).code != 0 or "held" not in run("status", *options).out:
            raise DemoError("the ledger of isolation is not empty")


def _tell(executor: _Unprivileged, place: int, printed: str, own: set[int]) -> None:
    answers = [executor.ask(f"{_NAME}{number}") for number in range(_GPUS)]
    name = f"TaskManager {place + 1} (pid {executor.pid}, uid {_NOBODY})"
    print(f"  {name}: {printed}, opening GPU 0..{_GPUS - 1}: {' '.join(answers)}")
    expected = ["ENXIO" if number in own else "EPERM" for number in range(_GPUS)]
    if (printed, answers) != ("0,1", expected):
        raise DemoError(f"TaskManager {place + 1} got {printed!r} and {answers} instead of {expected}")


@contextmanager
def _nodes() -> Iterator[int]:
    """Device nodes under a major number that no driver has (of those for local use, Documentation/admin-guide)."""
    lines = Path("/proc/devices").read_text(encoding="ascii").split("Block devices")[0].split("\n")
    taken = {line.split()[0] for line in lines if line.strip()[:1].isdigit()}
    major = next(number for number in range(254, 239, -1) if str(number) not in taken)
    made = []
    try:
        for number in range(_GPUS):
            os.mknod(f"{_NAME}{number}", stat.S_IFCHR | 0o666, os.makedev(major, number))
            made.append(Path(f"{_NAME}{number}"))
            made[-1].chmod(0o666)
        yield major
    finally:
        for path in made:
            path.unlink()


class _Unprivileged(Companion):
    """A process of user nobody that opens what it is told to: ``opened``, or the error's name."""

    def __init__(self) -> None:
        super().__init__(_BODY)
        if self.hear() != "ready":
            raise DemoError(f"no process could be started as uid {_NOBODY}")

    def __enter__(self) -> _Unprivileged:
        return self
