"""Where this machine mounts the two cgroup hierarchies that can deny devices, and which of them a view shows."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

View = Literal["hybrid", "v1", "v2"]

VIEWS: tuple[View, ...] = ("hybrid", "v1", "v2")
# For ``parametrize("view", …, indirect=True)`` on tests that need one of them.
WITH_V1: tuple[View, ...] = ("hybrid", "v1")
WITH_V2: tuple[View, ...] = ("hybrid", "v2")
CGROUPS = "/sys/fs/cgroup"
TOOLS = ("unshare", "nsenter", "setpriv", "sudo", "ldconfig")


@dataclass(frozen=True)
class Hierarchies:
    """Mount points; None where there is none. ``v1`` is the one with the ``devices`` controller."""

    v1: Path | None
    v2: Path | None

    def seen_in(self, view: View) -> Hierarchies:
        """What is left of them in a view."""
        return Hierarchies(None if view == "v2" else self.v1, None if view == "v1" else self.v2)


def mounted(mountinfo: str) -> Hierarchies:
    """Read ``/proc/PID/mountinfo``; where a hierarchy is mounted several times, the last one below /sys/fs/cgroup."""
    v1 = v2 = None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        point, (kind, _, options) = before.split()[4], after.split()
        if point != CGROUPS and not point.startswith(f"{CGROUPS}/"):
            continue
        if kind == "cgroup" and "devices" in options.split(","):
            v1 = Path(point)
        if kind == "cgroup2":
            v2 = Path(point)
    return Hierarchies(v1, v2)


@functools.cache
def of_this_machine() -> Hierarchies:
    """As the test run itself sees them."""
    return mounted(Path("/proc/self/mountinfo").read_text(encoding="utf-8"))


@functools.cache
def why_impossible(view: View) -> str | None:
    """Why no lab can show the view here, or None: a reason for ``pytest.skip``."""
    if os.geteuid() != 0:
        return "only root can make mount namespaces, device nodes and cgroups"
    absent = [tool for tool in TOOLS if shutil.which(tool, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if absent:
        return f"no {', no '.join(absent)} (see tools/system-packages.sh)"
    unshared = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "true"], capture_output=True, text=True, check=False
    )
    if unshared.returncode != 0:
        return f"no mount namespace can be made: {unshared.stderr.strip()}"
    machine = of_this_machine()
    wanted = {"cgroup v1 'devices'": machine.v1, "cgroup v2": machine.v2}
    if view == "v1":
        del wanted["cgroup v2"]
    if view == "v2":
        del wanted["cgroup v1 'devices'"]
    for name, point in wanted.items():
        if point is None:
            return f"{name} is not mounted below {CGROUPS}"
        if not os.access(point, os.W_OK):
            return f"{name} can't be written to at {point}"
    return None
