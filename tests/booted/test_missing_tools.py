"""Where no host can be booted, one line says what lacks, and what installs it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.script import PATH, ROOT

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="hosts are booted by root alone, which is told first")

UNUSABLE = 69
PACKAGES = {"podman": "podman", "mmdebstrap": "mmdebstrap", "flock": "util-linux"}


def run(script: str, *words: str, folder: Path, lacking: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A tool of ours on a machine that has everything in PATH but one thing."""
    for path in PATH.split(":"):
        for program in Path(path).glob("*"):
            if program.name != lacking and not (folder / program.name).is_symlink():
                (folder / program.name).symlink_to(program)
    return subprocess.run(
        [str(ROOT / "tools" / script), *words],
        env={"PATH": str(folder), "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


@pytest.mark.parametrize("command", [("booted-image.sh",), ("molecule.sh", "default")], ids=lambda words: words[0])
@pytest.mark.parametrize("tool", PACKAGES)
def test_a_missing_tool_is_named_with_its_package(tmp_path: Path, command: tuple[str, ...], tool: str) -> None:
    done = run(*command, folder=tmp_path, lacking=tool)
    told = f"no booted hosts here: no {tool}; 'make setup' installs it on Debian (package {PACKAGES[tool]})\n"
    assert (done.returncode, done.stdout, done.stderr) == (UNUSABLE, "", told)


@pytest.mark.parametrize(
    ("engine", "told"),
    [
        ("docker", "no docker; install it, or leave MOLECULE_ENGINE out to take podman"),
        ("lxc", "MOLECULE_ENGINE is 'lxc'; allowed: podman, docker"),
    ],
)
def test_an_engine_that_can_not_be_used_is_named(tmp_path: Path, engine: str, told: str) -> None:
    done = run("molecule.sh", "default", folder=tmp_path, lacking="docker", MOLECULE_ENGINE=engine)
    assert (done.returncode, done.stdout, done.stderr) == (UNUSABLE, "", f"no Molecule here: {told}\n")
