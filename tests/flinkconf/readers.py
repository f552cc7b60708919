"""Which Flink reads which file: the releases under test, and the configuration files that each of them looks for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.fetch_flink import home_of

FLAT, YAML = "flink-conf.yaml", "config.yaml"

# `make test-flink-matrix` names all that are pinned.
VERSIONS = tuple(os.environ.get("FLINK_VERSIONS", "1.20.5 2.3.0").split())


@dataclass(frozen=True)
class Reader:
    """One release, and one of the files that it reads."""

    version: str
    file: str

    def __str__(self) -> str:
        return f"{self.version}-{self.file}"

    def files(self) -> tuple[str, ...]:
        """All the files that the release reads."""
        return files_of(self.version)


def files_of(version: str) -> tuple[str, ...]:
    """The files that a release reads, the one that it prefers first."""
    release = tuple(map(int, version.split(".")))
    return ((FLAT,) if release < (2,) else ()) + ((YAML,) if release >= (1, 19) else ())


def why_absent(version: str) -> str | None:
    """Why the release can't be run, or None where it was fetched."""
    missing = not home_of(version).is_dir()
    return f"Flink {version} is not fetched: python tools/fetch_flink.py {version}" if missing else None


def put(folder: Path, files: Mapping[str, bytes | None]) -> Path:
    """Make a configuration folder with these files; None makes a folder of that name."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if content is None:
            (folder / name).mkdir()
        else:
            (folder / name).write_bytes(content)
    return folder


READERS = tuple(Reader(version, file) for version in VERSIONS for file in files_of(version))
