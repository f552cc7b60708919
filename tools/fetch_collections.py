"""Fetch the Ansible collections that the tests play with into the user's cache and print the folder that holds them.

They come out of PyPI's `ansible`, which bundles them, so that Ansible Galaxy need not be reachable. It is one,
`community.docker`: by its connection plugin Ansible plays on containers.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tools.fetch_flink import FetchError, cache_folder

VERSION = "12.3.0"
SHA256 = "cd156f82fa87f7a899212b0efa9f7ca3a24d609212de9f78428a572eb01e5414"
BUNDLED = ("ansible_collections/community/docker/",)
DOWNLOAD_LIMIT_SECONDS = 300.0


def main() -> int:
    """Print the folder; on failure, one line on standard error and exit 1."""
    try:
        print(fetch())
    except (FetchError, OSError, zipfile.BadZipFile) as error:
        print(f"fetch_collections: ansible {VERSION}: {error}", file=sys.stderr)
        return 1
    return 0


def fetch() -> Path:
    """Return a folder for `ANSIBLE_COLLECTIONS_PATH`; it is filled first where the cache lacks it."""
    cache = cache_folder()
    home = cache / f"collections-{VERSION}"
    cache.mkdir(parents=True, exist_ok=True)
    with _only_one_at_a_time(cache / ".collections.lock"):
        if not home.is_dir():
            _make_home(home, cache / ".collections.part")
    return home


def _make_home(home: Path, part: Path) -> None:
    """Fill `part` and name it last, so that half of it never counts as cached."""
    shutil.rmtree(part, ignore_errors=True)  # left by a run that was killed
    part.mkdir()
    try:
        _download(part)
        (wheel,) = part.glob("ansible-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(part / "home", [name for name in archive.namelist() if name.startswith(BUNDLED)])
        (part / "home").rename(home)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _download(folder: Path) -> None:
    requirement = folder / "requirements.txt"
    requirement.write_text(f"ansible=={VERSION} --hash=sha256:{SHA256}\n")
    # No cache of pip's own: it would keep 50 MB, of which 2 are wanted.
    command = [sys.executable, "-m", "pip", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
    command += ["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    command += ["--dest", str(folder), "--requirement", str(requirement)]
    try:
        done = subprocess.run(
            command,
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOWNLOAD_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired as expired:
        raise FetchError(f"it was not downloaded within {expired.timeout:.0f} s; try again") from expired
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
        raise FetchError(f"pip can't download it: {reason[0]}; is the package index reachable?")


@contextlib.contextmanager
def _only_one_at_a_time(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
