"""Fetching Flink: whole or not at all, once, in whatever form it comes. A stand-in plays pip."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

FETCH = Path(__file__).parents[2] / "tools" / "fetch_flink.py"

# Found before the real pip through PYTHONPATH. PIP_CASE says which libraries it has, or how it fails.
PIP = """\
import io, os, sys, tarfile, zipfile
case, folder = os.environ["PIP_CASE"], sys.argv[sys.argv.index("--dest") + 1]
name = open(sys.argv[sys.argv.index("--requirement") + 1]).read()
open(os.environ["PIP_CALLS"], "a").write(name + "\\n")
if case == "fails":
    sys.exit("WARNING: trying\\nERROR: no such release\\nERROR: giving up")
os.makedirs(folder)
scripts = ["bin/flink", "bin/taskmanager.sh", "conf/config.yaml", "table/udf.py"]
libraries = ["lib/flink-dist-9.1.0.jar", "plugins/external-resource-gpu/gpu.sh"]
if name.startswith("apache-flink-libraries") and case == "source":
    with tarfile.open(folder + "/apache-flink-libraries-9.1.0.tar.gz", "w:gz") as archive:
        for file in libraries + ["../../escaped"]:
            archive.addfile(tarfile.TarInfo("apache-flink-libraries-9.1.0/deps/" + file), io.BytesIO())
else:
    with zipfile.ZipFile(folder + "/" + name.split("=")[0].replace("-", "_") + "-9.1.0-py3.whl", "w") as archive:
        for file in libraries if "libraries" in name else scripts:
            archive.writestr("pyflink/" + file, "")
if case == "damaged":
    open(os.path.join(folder, os.listdir(folder)[0]), "r+").truncate(10)
"""


class Fetcher:
    """Runs the tool with an empty cache of its own and the stand-in for pip."""

    def __init__(self, folder: Path) -> None:
        """Lay out the stand-in below `folder`."""
        self.home = folder / "cache" / "flink-gpu-discovery" / "flink-9.1.0"
        self._calls = folder / "calls"
        module = folder / "site" / "pip"
        module.mkdir(parents=True)
        (module / "__init__.py").touch()
        (module / "__main__.py").write_text(PIP)
        self._environment = {
            **os.environ,
            "PYTHONPATH": str(module.parent),
            "PIP_CALLS": str(self._calls),
            "XDG_CACHE_HOME": str(folder / "cache"),
        }

    def start(self, case: str, *versions: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, FETCH, *(versions or ["9.1.0"])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self._environment, "PIP_CASE": case},
        )

    def run(self, case: str, *versions: str) -> tuple[int, str, str]:
        """Return exit status, standard output and the last line of standard error."""
        process = self.start(case, *versions)
        output, errors = process.communicate(timeout=30)
        return process.returncode, output, (errors.splitlines() or [""])[-1]

    def downloads(self) -> list[str]:
        return self._calls.read_text().splitlines()


@pytest.fixture
def fetcher(tmp_path: Path) -> Fetcher:
    return Fetcher(tmp_path)


@pytest.mark.parametrize("libraries", ["wheel", "source"])
def test_a_release_is_unpacked_without_its_python_parts(fetcher: Fetcher, libraries: str) -> None:
    assert fetcher.run(libraries)[:2] == (0, f"{fetcher.home}\n")

    files = {file for file in fetcher.home.rglob("*") if file.is_file()}
    assert {str(file.relative_to(fetcher.home)) for file in files} == {
        "bin/flink",
        "bin/taskmanager.sh",
        "conf/config.yaml",
        "lib/flink-dist-9.1.0.jar",
        "plugins/external-resource-gpu/gpu.sh",
    }
    assert {file.name for file in files if os.access(file, os.X_OK)} == {"flink", "taskmanager.sh", "gpu.sh"}


def test_a_cached_release_is_not_downloaded_again_nor_twice_by_two_at_once(fetcher: Fetcher) -> None:
    for process in [fetcher.start("wheel"), fetcher.start("wheel")]:
        assert process.communicate(timeout=30)[0] == f"{fetcher.home}\n"

    assert fetcher.run("fails") == (0, f"{fetcher.home}\n", "")
    assert fetcher.downloads() == ["apache-flink==9.1.0", "apache-flink-libraries==9.1.0"]


def test_several_releases_are_named_a_line_each(fetcher: Fetcher) -> None:
    homes = [fetcher.home, fetcher.home.with_name("flink-9.1.1")]
    for home in homes:
        home.mkdir(parents=True)

    assert fetcher.run("fails", "9.1.0", "9.1.1") == (0, f"{homes[0]}\n{homes[1]}\n", "")


def test_of_a_pinned_release_pip_takes_no_other_archive(tmp_path: Path) -> None:
    archives = tmp_path / "archives"
    archives.mkdir()
    with zipfile.ZipFile(archives / "apache_flink-1.20.5-py3-none-any.whl", "w") as wheel:
        wheel.writestr("apache_flink-1.20.5.dist-info/METADATA", "Name: apache-flink\nVersion: 1.20.5\n")
    index = {"PIP_CONFIG_FILE": os.devnull, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(archives)}

    done = subprocess.run(
        [sys.executable, FETCH, "1.20.5"],
        env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(tmp_path / "cache"), **index},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 1
    assert "pip can't download apache-flink==1.20.5: THESE PACKAGES DO NOT MATCH THE HASHES" in done.stderr
    assert not (tmp_path / "cache/flink-gpu-discovery/flink-1.20.5").exists()


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("fails", "pip can't download apache-flink==9.1.0: no such release"),
        ("damaged", "apache_flink-9.1.0-py3.whl is damaged: File is not a zip file"),
    ],
)
def test_what_was_not_fetched_whole_never_counts_as_cached(fetcher: Fetcher, case: str, reason: str) -> None:
    assert fetcher.run(case) == (1, "", f"fetch_flink: Flink 9.1.0: {reason}")
    assert not fetcher.home.exists()

    assert fetcher.run("wheel")[0] == 0
