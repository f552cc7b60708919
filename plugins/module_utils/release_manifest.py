"""What a release of flink-gpu-discovery consists of: the text of its ``MANIFEST``, and the name that follows from it.

A line a file, sorted by path: the SHA-256 of its content, its mode, its path. A release is named after its version and
the hash of that text, so a name stands for every byte and every mode. Controller and hosts read it with this module.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

MANIFEST = "MANIFEST"
STAMP = "BYTECODE"
SCRIPTS = "bin/"
FILE, SCRIPT = 0o644, 0o755
LONGEST_PATH = 100  # what a ustar header holds in its one field for names
_NAME = re.compile(r"[0-9][0-9A-Za-z.+]*-[0-9a-f]{12}")
_LINE = re.compile(r"([0-9a-f]{64})  (0644|0755)  (\S+)")
_PATH = re.compile(r"\w[\w.+-]*(?:/\w[\w.+-]*)*", re.ASCII)  # no part starts with a dot, so none leads outside
_SHEBANG = re.compile(rb"#!(/\S+) -IS\n")
_SHIPPED_SHEBANG = b"#!/usr/bin/python3 -IS\n"


class ReleaseError(Exception):
    """A release can't be made, trusted or found; the text says why and what mends it."""


@dataclass(frozen=True)
class Entry:
    """One file: the hash of its content as shipped, its mode, its path below the release's folder."""

    sha256: str
    mode: int
    path: str

    def line(self) -> str:
        """Its line, without the end."""
        return f"{self.sha256}  {self.mode:04o}  {self.path}"


def entry(path: str, content: bytes) -> Entry:
    """The entry of a file to be shipped: scripts are executable, all else is read only by its owner's leave."""
    if not is_plain(path):
        raise ReleaseError(f"{path!r} can't be shipped: use letters, digits and '_+-.' in at most {LONGEST_PATH} bytes")
    return Entry(sha256(content), SCRIPT if path.startswith(SCRIPTS) else FILE, path)


def is_plain(path: str) -> bool:
    """Whether a release may hold a file there."""
    odd = "__pycache__" in path.split("/") or path in (MANIFEST, STAMP) or len(path) > LONGEST_PATH
    return not odd and _PATH.fullmatch(path) is not None


def render(entries: list[Entry]) -> str:
    """The text of a MANIFEST."""
    return "".join(item.line() + "\n" for item in sorted(entries, key=lambda item: item.path))


def parse(text: str) -> list[Entry]:
    """Read a MANIFEST; only what ``render`` would write is taken."""
    found = [_entry_of(line) for line in text.splitlines()]
    paths = {item.path for item in found}
    if not found or len(paths) < len(found) or paths & folders_of(paths) or render(found) != text:
        raise ReleaseError("this MANIFEST is empty, out of order, or names a path twice: ship the release again")
    return found


def _entry_of(line: str) -> Entry:
    match = _LINE.fullmatch(line)
    if not match or not is_plain(match[3]):
        raise ReleaseError(f"MANIFEST: {line[:200]!r} is not '<sha256>  <mode>  <path>': ship the release again")
    return Entry(match[1], int(match[2], 8), match[3])


def folders_of(paths: set[str]) -> set[str]:
    """The folders that lead to these paths, without the release's own."""
    return {path[:end] for path in paths for end, letter in enumerate(path) if letter == "/"}


def name_for(version: str, text: str) -> str:
    """The name of the release of that version and MANIFEST."""
    name = f"{version}-{sha256(text.encode())[:12]}"
    if not is_name(name):
        raise ReleaseError(f"the version {version!r} can't name a folder: use digits, letters, '.' and '+'")
    return name


def is_name(name: str) -> bool:
    """Whether it has the form of a release's name."""
    return _NAME.fullmatch(name) is not None


def fits(name: str, text: str) -> bool:
    """Whether a release of that name has this MANIFEST."""
    return is_name(name) and name.rpartition("-")[2] == sha256(text.encode())[:12]


def sha256(content: bytes) -> str:
    """The hash as a MANIFEST writes it."""
    return hashlib.sha256(content).hexdigest()


def split_shebang(content: bytes) -> tuple[str, bytes]:
    """The interpreter that a script names ('' if it is none of ours), and the content as it was shipped."""
    match = _SHEBANG.match(content)
    if not match:
        return "", content
    return match[1].decode(errors="replace"), _SHIPPED_SHEBANG + content[match.end() :]


def with_interpreter(content: bytes, python: str) -> bytes:
    """A shipped script for hosts whose Python is ``python``."""
    if not content.startswith(_SHIPPED_SHEBANG):
        raise ReleaseError(f"a script in {SCRIPTS} starts with {content[:40]!r}: make it {_SHIPPED_SHEBANG!r}")
    return f"#!{python} -IS\n".encode() + content[len(_SHIPPED_SHEBANG) :]
