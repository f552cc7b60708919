"""``tools/fetch_collections.py``: what it keeps in the cache is whole, or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.script import ROOT

WORDS = (sys.executable, "-m", "tools.fetch_collections")


def fetch(cache: Path) -> subprocess.CompletedProcess[str]:
    """Without a package index."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    return subprocess.run(WORDS, capture_output=True, cwd=ROOT, env=environment, text=True, timeout=50, check=False)


def test_without_a_package_index_it_says_so_and_keeps_nothing(tmp_path: Path) -> None:
    done = fetch(tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "is the package index reachable?" in done.stderr
    assert [path.name for path in (tmp_path / "flink-gpu-discovery").iterdir()] == [".collections.lock"]


def test_what_is_cached_is_found_without_a_package_index(tmp_path: Path) -> None:
    folder = tmp_path / "flink-gpu-discovery/collections-12.3.0"
    folder.mkdir(parents=True)
    done = fetch(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{folder}\n", "")
