"""A booted host is a machine of its own, and nothing is left of it, however the test run ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.booted.host import BootedHost
from tests.support.script import ROOT

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

END_SECONDS = 20.0
RUN = """\
import signal, sys
from tests.booted.host import BootedHost
host = BootedHost(sys.argv[1])
print(host.name, flush=True)
signal.pause()
"""


def cgroups(name: str) -> list[Path]:
    """Its folders on this machine, one a hierarchy."""
    root = Path("/sys/fs/cgroup")
    return [folder for folder in (root / name, *root.glob(f"*/{name}")) if folder.exists()]


def test_systemd_is_its_first_process(host: BootedHost) -> None:
    assert host.succeed("cat", "/proc/1/comm") == "systemd\n"
    assert host.succeed("systemctl", "is-system-running") == "running\n"
    assert host.run("id", "-un", user="flink").out == "flink\n"


def test_its_cgroups_have_the_layout_that_was_asked_for(host: BootedHost) -> None:
    kinds = host.succeed("sh", "-c", "awk '$3 ~ /^cgroup/ {print $3}' /proc/mounts | sort -u").split()
    assert kinds == {"v2": ["cgroup2"], "hybrid": ["cgroup", "cgroup2"]}[host.layout]
    assert cgroups(host.name)


def test_a_command_that_fails_tells_how(host: BootedHost) -> None:
    done = host.run("sh", "-c", "echo out; echo err >&2; exit 7")
    assert (done.code, done.out, done.err) == (7, "out\n", "err\n")


def test_nothing_is_left_when_the_test_run_is_killed(host: BootedHost) -> None:
    words = (sys.executable, "-c", RUN, host.layout)
    run = subprocess.Popen(words, stdout=subprocess.PIPE, cwd=ROOT, text=True, start_new_session=True)
    assert run.stdout is not None
    name = run.stdout.readline().strip()
    assert cgroups(name)
    os.killpg(run.pid, signal.SIGKILL)
    run.communicate()
    end = time.monotonic() + END_SECONDS
    while cgroups(name):
        assert time.monotonic() < end, cgroups(name)
        time.sleep(0.1)
    assert (
        f"--name {name}" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    )
