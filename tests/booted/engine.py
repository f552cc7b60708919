"""podman, prepared by ``tools/booted-image.sh``, and the layouts of cgroups that its hosts can have here."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.isolation.hierarchies import of_this_machine
from tests.support.script import PATH, ROOT

Layout = Literal["v2", "hybrid", "v1"]

LAYOUTS: tuple[Layout, ...] = ("v2", "hybrid")  # in these a confinement is of version 2

_TOOL = ROOT / "tools" / "booted-image.sh"
_UNUSABLE = 69
_BUILD_SECONDS = 600.0


class CannotBootError(Exception):
    """No host can be booted on this machine; says what lacks."""


@dataclass(frozen=True)
class Engine:
    """The image that hosts are made from, and the environment to call podman with."""

    image: str
    environment: dict[str, str]


@functools.cache
def prepare(suite: str = "bookworm") -> Engine:
    """Make the image if need be, which takes minutes; ``CannotBootError`` where podman can't be used."""
    done = subprocess.run([str(_TOOL), suite], capture_output=True, text=True, timeout=_BUILD_SECONDS, check=False)
    if done.returncode == _UNUSABLE:
        raise CannotBootError(done.stderr.strip().splitlines()[-1])
    assert done.returncode == 0, f"{_TOOL.name} ended with {done.returncode}: {done.stderr}"
    told = dict(line.split("=", 1) for line in done.stdout.splitlines())
    image = told.pop("BOOTED_IMAGE")
    return Engine(image, {"PATH": PATH, "HOME": str(Path.home()), **told})


def check_layout(layout: Layout) -> None:
    """``CannotBootError`` if this machine lacks what a host of that layout would show."""
    machine = of_this_machine()
    if machine.v2 is None:
        raise CannotBootError("no booted hosts here: cgroup v2 is not mounted")
    if layout != "v2" and machine.v1 is None:
        raise CannotBootError(f"no {layout} hosts here: cgroup v1's 'devices' controller is not mounted")
