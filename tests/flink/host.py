"""Where a cluster's processes run: on this machine, as the user who runs the tests, unless another host is given."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


class Host:
    """This machine. Other hosts override what is different there; folders have the same paths on all of them."""

    def flink_home(self, home: Path) -> Path:
        """Return where the host has the Flink that the tests have at `home`."""
        return home

    def hand_over(self, *folders: Path) -> None:
        """Let the host's user write into folders that the tests have made."""

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], folder: Path, output: int
    ) -> subprocess.Popen[bytes]:
        """Begin a command in `folder`, leading a session of its own, for the process of the cluster called `name`."""
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
