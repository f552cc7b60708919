"""Make an older collection than this one, as Ansible finds collections, for hosts to be upgraded from.

usage: python -m tests.molecule.older FOLDER [COMMIT]
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.role.collection import install_collection, pretend_version
from tests.support.script import ROOT

# The role as it was first whole, on hosts alone: before Flink's settings were merged.
COMMIT = "6d455610ad588bc0c21c9a558305bf2c525a7619"
FIRST = "a1ac702250319a0d3e6f29145b0c8dd0f39889de"  # of the history
VERSION = "0.0.1"


def make(folder: Path, commit: str = COMMIT) -> str:
    """Fill the folder, which is empty; tells what is in it."""
    place = folder / "ansible_collections/flinkops/gpu"
    archived = subprocess.run(
        ["git", "-C", ROOT, "archive", commit], capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False
    )
    if archived.returncode == 0:
        place.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", place], input=archived.stdout, timeout=60, check=True)
        return f"the collection of commit {commit[:12]}"
    reason = archived.stderr.decode(errors="replace").strip()
    if _has_history():
        raise SystemExit(f"git can't archive commit {commit[:12]}, though the project's history is here: {reason}")
    today = folder / "today"
    today.mkdir(parents=True)
    pretend_version(install_collection(today), VERSION, folder)
    return f"today's collection called {VERSION}, since there is no commit {commit[:12]} here: {reason}"


def _has_history() -> bool:
    words = ["git", "-C", str(ROOT), "cat-file", "-e", FIRST]
    return subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=False).returncode == 0


if __name__ == "__main__":
    sys.stdout.write(f"{make(Path(sys.argv[1]), *sys.argv[2:])}\n")
