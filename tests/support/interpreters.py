"""The Pythons that managed hosts may have, as far as this machine has them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

VERSIONS = ["3.9", "3.10", "3.11", "3.12", "3.13", "3.14"]


def interpreter(version: str) -> str | None:
    """A working Python of that version, from PATH or pyenv's folder."""
    pyenv = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found = [shutil.which(f"python{version}"), *sorted(map(str, pyenv.glob(f"{version}.*/bin/python3")))]
    for path in filter(None, found):
        answer = subprocess.run([path, "-IS", "-c", "pass"], capture_output=True, timeout=20, check=False)
        if answer.returncode == 0:
            return path
    return None
