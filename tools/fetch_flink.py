"""Fetch Flink releases from PyPI into the user's cache and print the FLINK_HOME of each.

A release is two distributions: `apache-flink` (scripts and configuration) and `apache-flink-libraries`
(jars and plugins). Unpacked over each other they are a whole Flink; their Python parts are left out.
The releases that this repository is tested with are pinned: pip takes no other archives for them.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

CLUSTER_PARTS = frozenset({"bin", "conf", "lib", "log", "opt", "plugins"})
DOWNLOAD_LIMIT_SECONDS = 900.0

# The wheels of one `apache-flink` differ in compiled Python code only, which is left out here. The one asked
# for is one that every release since 1.17 has, so that any Python on any machine can fetch any Flink.
ANY_WHEEL = ("--only-binary=:all:", "--python-version=3.10", "--platform=manylinux2014_x86_64")

# The SHA-256 of both archives, in the order of DISTRIBUTIONS: of that wheel, and of the libraries, which come as
# a wheel since Flink 2.2 and before as a source archive that holds the same files.
PINNED = {
    "1.18.1": (
        "f93cbc4d88e39135dd59d7d7cc2e2252dec4017c4943dd8ab62e117e953a2d15",
        "369ce11ab33e5e15cdd349db2f5412dcc2fad163b6a87aa93b927a3631bcca7f",
    ),
    "1.19.3": (
        "f1c0d2c0245bc0ad2c5ce5bb1b7dfe719410724342671267abfba5190e1827f4",
        "4a58e3a1fb7d83340bc96b6c080624c6d792d69fae5d294b96224775204a9c60",
    ),
    "1.20.5": (
        "953f1d9f9d418ca5fbc84881144b37e1c86b69b5d7b343bca737d47f9cbde25d",
        "e6aee62ea1a1fe7b32e28894ad079f3f1a50a372a4caac3df52405267f4228c8",
    ),
    "2.0.2": (
        "d58c1656bd1ec6b116be1b8adf2596c5254ef4cafd4b6641b56cf51735e30c1b",
        "64dced9d0324a5f23f84e9cdf444d3fd64632169e477f001c21b422f39b995ba",
    ),
    "2.3.0": (
        "e67ec32fc5056beacf16ec4ec682f3716df5b165d6e69c3bd2e176085a81cd5d",
        "38ece876553286b3a285cf344c2d2038f8a7ca10da5df54d5107250386d64151",
    ),
}
DISTRIBUTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("apache-flink", ANY_WHEEL),
    ("apache-flink-libraries", ()),
)


class FetchError(Exception):
    """Flink can't be fetched; the message is one line."""


def main() -> int:
    """Print a line for each release named; on failure, one line on standard error and exit 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", type=_version, nargs="+", help="a release of Apache Flink, such as 2.3.0")
    for version in parser.parse_args().version:
        try:
            print(fetch(version), flush=True)
        except (FetchError, OSError) as error:
            print(f"fetch_flink: Flink {version}: {error}", file=sys.stderr)
            return 1
    return 0


def fetch(version: str) -> Path:
    """Return FLINK_HOME of the release, which is downloaded first where the cache lacks it."""
    cache = cache_folder()
    home = home_of(version)
    if home.is_dir():
        return home
    cache.mkdir(parents=True, exist_ok=True)
    with _only_one_at_a_time(cache / f".flink-{version}.lock"):
        if not home.is_dir():  # another run may have made it while this one waited for the lock
            _make_home(version, home, cache / f".flink-{version}.part")
    return home


def home_of(version: str) -> Path:
    """Return where the release is once it has been fetched."""
    return cache_folder() / f"flink-{version}"


def cache_folder() -> Path:
    """Return this project's folder below the user's cache folder (XDG base directory specification)."""
    configured = Path(os.environ.get("XDG_CACHE_HOME", ""))
    base = configured if configured.is_absolute() else Path.home() / ".cache"
    return base / "flink-gpu-discovery"


def _make_home(version: str, home: Path, part: Path) -> None:
    """Build the release in `part` and name it last, so that half a download never counts as cached."""
    print(f"fetch_flink: downloading Flink {version}, once, into {home}", file=sys.stderr)
    shutil.rmtree(part, ignore_errors=True)  # left by a run that was killed
    try:
        unpacked = part / "home"
        unpacked.mkdir(parents=True)
        for (name, options), pin in zip(DISTRIBUTIONS, PINNED.get(version, ("", "")), strict=True):
            _download(f"{name}=={version}", pin, part / name, options)
        for archive in sorted(part.glob("*/apache*flink*")):
            _unpack(archive, unpacked)
        _check_complete(unpacked, version)
        unpacked.rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _download(requirement: str, pin: str, folder: Path, options: tuple[str, ...]) -> None:
    # No cache of pip's own: the unpacked release is the cache, and a second copy would be 300 MB.
    command = [sys.executable, "-m", "pip", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
    command += ["download", "--quiet", "--no-deps", "--dest", str(folder), *options]
    try:
        done = subprocess.run(
            [*command, "--requirement", "/dev/stdin"],  # pip takes a hash from a file only
            check=False,
            input=f"{requirement} --hash=sha256:{pin}" if pin else requirement,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired as expired:
        raise FetchError(f"{requirement} was not downloaded within {expired.timeout:.0f} s") from expired
    if done.returncode != 0:
        raise FetchError(f"pip can't download {requirement}: {_reason(done.stderr)}")


def _reason(pip_output: str) -> str:
    """Choose the line of pip's output that says most."""
    lines = [line.strip() for line in pip_output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    reason = (errors or lines[-1:] or ["it printed nothing"])[0]
    return f"{reason}; is the package index reachable?" if "(from versions: none)" in reason else reason


def _unpack(archive: Path, home: Path) -> None:
    members = _wheel_members if archive.suffix == ".whl" else _source_members
    try:
        for path, content in members(archive):
            _write(home / path, content)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as error:
        raise FetchError(f"{archive.name} is damaged: {error}") from error


def _wheel_members(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    with zipfile.ZipFile(archive) as wheel:
        for member in wheel.infolist():
            path = _path_in_home(member.filename, below="pyflink")
            if path and not member.is_dir():
                with wheel.open(member) as content:
                    yield path, content


def _source_members(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    with tarfile.open(archive, "r|gz") as source:
        for member in source:
            path = _path_in_home(member.name.partition("/")[2], below="deps")
            content = source.extractfile(member) if path and member.isfile() else None
            if path and content:
                yield path, content


def _path_in_home(name: str, *, below: str) -> PurePosixPath | None:
    """Return where a member belongs in FLINK_HOME, or None for what a cluster does not need."""
    path = PurePosixPath(name)
    if path.parts[:1] != (below,) or ".." in path.parts:
        return None
    inside = path.relative_to(below)
    return inside if len(inside.parts) > 1 and inside.parts[0] in CLUSTER_PARTS else None


def _write(path: Path, content: IO[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        shutil.copyfileobj(content, file, 1 << 20)
    if path.suffix == ".sh" or (path.parent.name, path.name) == ("bin", "flink"):
        path.chmod(0o755)


def _check_complete(home: Path, version: str) -> None:
    for part in ("bin/flink", f"lib/flink-dist-{version}.jar", "conf", "plugins/external-resource-gpu"):
        if not (home / part).exists():
            raise FetchError(f"what was downloaded has no {part}")


@contextlib.contextmanager
def _only_one_at_a_time(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _version(text: str) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is no release of Flink")
    return text


if __name__ == "__main__":
    sys.exit(main())
