"""A lab as the host of a cluster: an unprivileged user runs Flink there, each process in a cgroup of its own."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.isolation.lab import FLINK, Lab

from .host import Host

HOME = Path("/opt/flink")


class LabHost(Host):
    """The lab's user `flink`. What is written goes to the machine's own folders, which the lab has, too."""

    def __init__(self, lab: Lab, home: Path) -> None:
        """Mount the Flink at `home` where the user can reach it."""
        self._lab = lab
        lab.path(str(HOME)).mkdir()
        mounted = lab.run("mount", "-n", "--bind", "-o", "ro", str(home), str(HOME))
        assert mounted.code == 0, mounted.err

    def flink_home(self, home: Path) -> Path:
        """Return where it was mounted."""
        return HOME

    def hand_over(self, *folders: Path) -> None:
        """Let the user write into folders."""
        for folder in folders:
            os.chown(folder, FLINK, FLINK)

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, output: int
    ) -> subprocess.Popen[bytes]:
        """Begin a command as the user, in the cgroup `name`."""
        return self._lab.start(
            *("setsid", "sh", "-c", 'exec "$@" 2>&1', "sh", *command),
            uid=FLINK,
            env=environment,
            cwd=str(folder),
            cgroup=self._lab.cgroup(name),
            output=output,
        )
