"""The collection as users get it: built by ansible-galaxy from this repository, installed into an empty folder."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.script import PATH, ROOT

BIN = Path(sys.executable).parent
_SECONDS = 60.0


def install_collection(folder: Path) -> Path:
    """A path for ``ANSIBLE_COLLECTIONS_PATH`` below ``folder``; made by the first of the processes that ask for it."""
    installed = folder / "collections"
    with (folder / "collections.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists():
            _make(installed, folder)
    return installed


def pretend_version(installed: Path, version: str, folder: Path) -> None:
    """Copy the installed collection into a folder, where its script has another version."""
    shutil.copytree(installed, folder, symlinks=True, dirs_exist_ok=True)
    path = folder / "ansible_collections/flinkops/gpu/discovery/flink_gpu_discovery/__init__.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    changed = [f'__version__ = "{version}"' if line.startswith("__version__") else line for line in lines]
    assert changed != lines
    path.write_text("\n".join((*changed, "")), encoding="utf-8")


def _make(installed: Path, folder: Path) -> None:
    part = folder / "collections.part"  # named last, so that half of it never counts
    _galaxy(folder, "build", "--force", "--output-path", str(folder), str(ROOT))
    (built,) = folder.glob("flinkops-gpu-*.tar.gz")
    _galaxy(folder, "install", "--offline", "--no-deps", "--force", "--collections-path", str(part), str(built))
    part.rename(installed)


def _galaxy(folder: Path, *words: str) -> None:
    environment = {"PATH": f"{BIN}:{PATH}", "LC_ALL": "C.UTF-8", "ANSIBLE_HOME": str(folder / "galaxy")}
    done = subprocess.run(
        [str(BIN / "ansible-galaxy"), "collection", *words],
        capture_output=True,
        env={**environment, "HOME": os.environ.get("HOME", "/")},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"ansible-galaxy collection {words[0]}: {done.stderr}{done.stdout}"
