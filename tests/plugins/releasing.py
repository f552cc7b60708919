"""Releases to install, small ones and the real one, and the module on a host that is a folder."""

from __future__ import annotations

import json
import re
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.flinkops.gpu.plugins.module_utils import artefact, release
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Wish

from tests.support.script import PATH, ROOT

DISCOVERY = ROOT / "discovery"
PYTHON = "/usr/bin/python3"
PYNVML = b'"""Bindings."""\ndef nvmlInit():\n    pass\n'
SCRIPT = "bin/flink-gpu-discovery"
_STARTER = b"""#!/usr/bin/python3 -IS
import os, sys
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import flink_gpu_discovery
print(flink_gpu_discovery.__version__)
"""
_ANSWER = re.compile(r"^localhost \| (\w+)!? => (\{.*^\})", re.DOTALL | re.MULTILINE)


def small(version: str, **more: bytes) -> Any:
    """A release of three files, and ``more`` modules of the package."""
    contents = {
        SCRIPT: _STARTER,
        "flink_gpu_discovery/__init__.py": f'__version__ = "{version}"\n'.encode(),
        "pynvml.py": PYNVML,
        **{f"flink_gpu_discovery/{name}.py": text for name, text in more.items()},
    }
    return artefact.assemble(contents)


@dataclass(frozen=True)
class Host:
    """A host whose releases stand in ``folder / "opt"``."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "opt"

    @property
    def current(self) -> Path:
        return self.root / "current"

    def release(self, name: str) -> Path:
        return self.root / "releases" / name

    def install(self, made: Any, *, check: bool = False, ship: bool = True, **wish: Any) -> dict[str, Any]:
        """Run the module's logic for a release, with its archive."""
        archive = self.folder / "release.tar"
        archive.write_bytes(made.archive())
        shipped = str(archive) if ship else ""
        return self.run(Wish("present", made.name, made.manifest, shipped, **{"python": PYTHON, **wish}), check=check)

    def roll_back(self, to: str = "", *, check: bool = False, **wish: Any) -> dict[str, Any]:
        return self.run(Wish("rolled_back", to=to, **{"python": PYTHON, **wish}), check=check)

    def remove(self, *, check: bool = False) -> dict[str, Any]:
        return self.run(Wish("absent"), check=check)

    def run(self, wish: Any, *, check: bool = False) -> dict[str, Any]:
        found: dict[str, Any] = release.run(str(self.root), wish, check=check)
        return found

    def answer(self, *words: str) -> str:
        """What the current script prints."""
        return answer(self.current / SCRIPT, *words)

    def names(self) -> set[str]:
        return {path.name for path in (self.root / "releases").iterdir()}


def answer(script: Path, *words: str) -> str:
    """What an installed script prints; it must succeed."""
    done = subprocess.run([script, *words], capture_output=True, env={"PATH": PATH}, timeout=20, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def snapshot(folder: Path) -> dict[str, tuple[str, int, str, int]]:
    """Every path below: kind and mode, owner, content or target; and when it was changed."""
    return {str(path.relative_to(folder)): _seen(path) for path in sorted(folder.rglob("*"))}


def _seen(path: Path) -> tuple[str, int, str, int]:
    status = path.lstat()
    content = str(path.readlink()) if path.is_symlink() else path.read_bytes().hex() if path.is_file() else ""
    return stat.filemode(status.st_mode), status.st_uid, content, status.st_mtime_ns


@dataclass(frozen=True)
class Answer:
    """What ``ansible`` said: the word before the result, the result, and all it printed."""

    word: str
    result: Mapping[str, Any]
    out: str


def ansible(folder: Path, *options: str, **arguments: Any) -> Answer:
    """Run the module through Ansible on this machine; ``folder`` is Ansible's own."""
    command: list[str | Path] = [ROOT / ".venv/bin/ansible", "localhost", "-c", "local", "-m", "flinkops.gpu.release"]
    command += ["-a", json.dumps(arguments), *options]
    settings = {
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"),
        "ANSIBLE_HOME": str(folder),
        "ANSIBLE_LOCAL_TEMP": str(folder / "local"),
        "ANSIBLE_REMOTE_TEMP": str(folder / "remote"),
        "ANSIBLE_NOCOLOR": "1",
        "LC_ALL": "C.UTF-8",
        "PATH": PATH,
    }
    done = subprocess.run(command, capture_output=True, text=True, env=settings, cwd="/", timeout=50, check=False)
    match = _ANSWER.search(done.stdout)
    assert match, done.stdout + done.stderr
    return Answer(match[1], json.loads(match[2]), done.stdout)


def mode_and_owner(path: Path) -> tuple[int, int, int]:
    """Mode, owner, group."""
    status = path.lstat()
    return stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
