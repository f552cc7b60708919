"""A configuration folder of Flink's own user, and Python run where folders are mounted for it alone."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import flink_conf_files

FLINK = 7001
OLD, NEW = b"# caf\xe9\r\nk: 1\n", b"k: 2\n"
_PREAMBLE = "from ansible_collections.flinkops.gpu.plugins.module_utils import flink_conf_files, flink_conf_replace\n"


def flink_folder(top: Path) -> Path:
    """``flink/conf`` with a ``config.yaml``, all of Flink's user."""
    folder = top / "flink" / "conf"
    folder.mkdir(parents=True)
    path = folder / "config.yaml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    for each in (folder.parent, folder, path):
        os.chown(each, FLINK, FLINK)
    return folder


def find(conf: Path) -> flink_conf_files.ConfFile:
    """Its ``config.yaml``."""
    return flink_conf_files.find(str(conf), "config.yaml")


def about(path: Path) -> tuple[bytes, int, int]:
    """Content, owner and mode of a file."""
    status = path.stat()
    return path.read_bytes(), status.st_uid, status.st_mode & 0o7777


def mounted(shell: str, python: str) -> str:
    """What the Python prints in a mount namespace of its own, behind the commands."""
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, timeout=10, check=False).returncode:
        pytest.skip("this machine lets nobody mount (unshare --mount)")
    command = [
        "unshare",
        "--mount",
        "sh",
        "-e",
        "-c",
        f'{shell}\nexec "$0" -c "$1"',
        sys.executable,
        _PREAMBLE + python,
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=50, check=True, env=environment)
    return done.stdout
