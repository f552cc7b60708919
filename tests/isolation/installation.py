"""The package as a managed host has it: below /opt, its scripts linked, sudo told."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

from tests.isolation.agent import PYTHON
from tests.isolation.namespace import Namespace
from tests.support.script import ROOT

CURRENT = "/opt/flink-gpu-discovery/current"
SCRIPT = "/usr/local/bin/flink-gpu-discovery"
ROOT_SCRIPT = "/usr/local/libexec/flink-gpu-discovery-root"

_RULES = f"Defaults!{ROOT_SCRIPT} !use_pty, !requiretty\n"


def prepare_release(folder: Path) -> Path:
    """Copy the package, pynvml beside it, and compile both, so that every lab need only copy the outcome."""
    release = folder / "release"
    shutil.copytree(
        ROOT / "discovery", release, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__", ".*"), symlinks=True
    )
    binding = importlib.util.find_spec("pynvml")
    if binding and binding.origin:
        shutil.copy(binding.origin, release)
    compiling = (PYTHON, "-IS", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(release))
    subprocess.run(compiling, check=True, timeout=60)
    for path in (release, *release.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
    return release


def install(namespace: Namespace, release: Path) -> None:
    """Put the release in its place and link its scripts; the root script where there is one."""
    current = namespace.path(CURRENT)
    shutil.copytree(release, current)
    current.parent.chmod(0o755)
    for link in (SCRIPT, ROOT_SCRIPT):
        name = Path(link).name
        path = namespace.path(link)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o755)
        path.unlink(missing_ok=True)
        if (release / "bin" / name).exists():
            path.symlink_to(f"{CURRENT}/bin/{name}")


def sudo_rules(users: tuple[str, ...]) -> str:
    """What lets these users call the root script, and nothing else."""
    return _RULES + "".join(f"{user} ALL=(root) NOPASSWD: NOSETENV: {ROOT_SCRIPT}\n" for user in users)


def add_users(namespace: Namespace, users: dict[str, int]) -> None:
    """Users without a password, each with a group of its own name and number; and the machine's name, for sudo."""
    lines = {
        "passwd": "{name}:x:{uid}:{uid}::/:/bin/sh\n",
        "group": "{name}:x:{uid}:\n",
        "shadow": "{name}:*:19000:0:99999:7:::\n",
    }
    for file, line in lines.items():
        path = namespace.path(f"/etc/{file}")
        kept = [old for old in path.read_text(encoding="utf-8").splitlines(True) if not _names_one_of(users, old)]
        path.write_text("".join((*kept, *(line.format(name=name, uid=uid) for name, uid in users.items()))), "utf-8")
    with namespace.path("/etc/hosts").open("a", encoding="utf-8") as stream:
        stream.write(f"127.0.0.1 {Path('/proc/sys/kernel/hostname').read_text(encoding='utf-8').strip()}\n")


def _names_one_of(users: dict[str, int], line: str) -> bool:
    """Whether this machine has given a user's name or number away; the number stands third, but in shadow."""
    fields = line.rstrip("\n").split(":")
    return fields[0] in users or (fields[1:2] == ["x"] and fields[2] in map(str, users.values()))
