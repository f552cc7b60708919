"""The thread that leaves the caller's cgroups has ended when that is done."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.isolation.agent import PYTHON
from tests.isolation.hierarchies import of_this_machine
from tests.support.script import PATH, ROOT

_LEAVE = f"""
import os, sys
sys.path.insert(0, {str(ROOT / "discovery")!r})
with open(sys.argv[1] + "/cgroup.procs", "w") as file:
    file.write(str(os.getpid()))
from flink_gpu_discovery.host import Host
from flink_gpu_discovery.isolation import retreat
leaving = retreat.Leaving(Host())
leaving.start()
threads = len(os.listdir("/proc/self/task"))
leaving.finish()
print(threads, len(os.listdir("/proc/self/task")), retreat.is_out(Host()), flush=True)
os._exit(0)
"""


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """One below the top, removed afterwards."""
    top = of_this_machine().v2
    if os.geteuid() != 0 or top is None:
        pytest.skip("only root can make a cgroup, and cgroup v2 must be mounted")
    folder = top / f"flink-gpu-test-leaving-{os.getpid()}"
    folder.mkdir()
    yield folder
    folder.rmdir()


def test_a_thread_that_ends_slowly_is_waited_for(cgroup: Path) -> None:
    """Before Python 3.9.6 a thread loads a library at its end, through a descriptor that must not be closed then."""
    slowly = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=exit", "-e", "inject=exit:delay_enter=100000"]
    words = [*slowly, PYTHON, "-IS", "-c", _LEAVE, str(cgroup)]
    done = subprocess.run(words, env={"PATH": PATH}, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 1 True\n", "")
