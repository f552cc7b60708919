"""The one file that is shipped to hosts: an uncompressed tar archive of the package, its scripts and pynvml.

The same input gives the same bytes, so that every controller ships the same release under the same name. It isn't
compressed, since a compressor's version would show in it; ssh compresses. It holds no folders: its files tell them.
"""

from __future__ import annotations

import ast
import io
import os
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import (
    FILE,
    MANIFEST,
    SCRIPT,
    SCRIPTS,
    Entry,
    ReleaseError,
    entry,
    name_for,
    render,
    with_interpreter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = "flink_gpu_discovery"
PYNVML = "pynvml.py"
_SHIPPED = (SCRIPTS.rstrip("/"), PACKAGE)


@dataclass(frozen=True)
class Artefact:
    """A release to be shipped: its name, its MANIFEST, and what each of its files holds."""

    name: str
    manifest: str
    contents: dict[str, bytes]

    def archive(self) -> bytes:
        """The tar archive: the MANIFEST first, then the files in its order."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive:
            _add(archive, MANIFEST, self.manifest.encode())
            for path in sorted(self.contents):
                _add(archive, path, self.contents[path])
        return stream.getvalue()


def build(discovery: Path, pynvml: bytes | None) -> Artefact:
    """The release that ``discovery`` and the text of pynvml (``None``: without) make."""
    contents = {path.relative_to(discovery).as_posix(): path.read_bytes() for path in _shipped(discovery)}
    return assemble(contents if pynvml is None else {**contents, PYNVML: pynvml})


def assemble(contents: dict[str, bytes]) -> Artefact:
    """The release of these files."""
    manifest = render([_checked(path, content) for path, content in contents.items()])
    return Artefact(name_for(_version(contents), manifest), manifest, contents)


def _shipped(discovery: Path) -> list[Path]:
    """The files to ship; one that is neither a file nor a folder is an error, as it would differ elsewhere."""
    found: list[Path] = []
    for name in _SHIPPED:
        if not _is_kind(discovery / name, stat.S_ISDIR):
            raise ReleaseError(f"{discovery / name} is not a folder: install the collection again")
        for folder, folders, files in os.walk(discovery / name, onerror=_raise):
            folders[:] = [item for item in folders if not _is_left_out(item)]
            inside = [Path(folder, item) for item in files if not _is_left_out(item)]
            _refuse_odd([*inside, *(Path(folder, item) for item in folders)])
            found += inside
    return found


def _raise(error: OSError) -> None:
    raise error


def _is_left_out(name: str) -> bool:
    return name.startswith(".") or name == "__pycache__" or name.endswith(".egg-info")


def _refuse_odd(paths: list[Path]) -> None:
    for path in paths:
        if not _is_kind(path, stat.S_ISREG, stat.S_ISDIR):
            raise ReleaseError(f"{path} is neither a file nor a folder: remove it, or put a file there")


def _is_kind(path: Path, *kinds: Callable[[int], bool]) -> bool:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return False
    return any(kind(mode) for kind in kinds)


def _checked(path: str, content: bytes) -> Entry:
    if path.startswith(SCRIPTS):
        with_interpreter(content, "/usr/bin/python3")  # a first line that can't be set is found here, not on hosts
    return entry(path, content)


def _version(contents: dict[str, bytes]) -> str:
    """``__version__`` of the package, read without running it."""
    path = f"{PACKAGE}/__init__.py"
    for statement in ast.parse(contents.get(path, b"")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__version__":
            return str(getattr(statement.value, "value", ""))  # what isn't constant has no value, and makes no name
    raise ReleaseError(f"discovery/{path} sets no __version__: install the collection again")


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    member = tarfile.TarInfo(path)
    member.size, member.mtime = len(content), 0
    member.mode = SCRIPT if path.startswith(SCRIPTS) else FILE
    archive.addfile(member, io.BytesIO(content))
