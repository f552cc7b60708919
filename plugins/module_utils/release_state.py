"""How a release stands on a host, beside what its MANIFEST says.

Its bytecode is listed in a stamp of its own, in the MANIFEST's form below a line that names the interpreter: that
differs from host to host.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.release_files import FOLDER_MODE, TOP, Node, read, tree
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import (
    FILE,
    MANIFEST,
    SCRIPTS,
    STAMP,
    ReleaseError,
    folders_of,
    parse,
    sha256,
)
from ansible_collections.flinkops.gpu.plugins.module_utils.release_python import Python, from_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import Entry

_FOLDER = Node("folder", FOLDER_MODE)
CACHE = "__pycache__"
EXTRA = "not part of it"


@dataclass(frozen=True)
class State:
    """What differs, by path and in words; ``lacking``: files whose content isn't to be found in the release."""

    damage: Mapping[str, str]
    bytecode: Mapping[str, str]
    lacking: tuple[str, ...]


def survey(folder: Path, manifest: str, python: Python) -> State:
    """Compare the release in ``folder`` with its manifest; a folder that isn't there lacks everything."""
    entries = parse(manifest)
    actual = tree(folder) if folder.is_dir() and not folder.is_symlink() else {}
    sources = {path: node for path, node in actual.items() if not is_bytecode(path)}
    compiled = {path: node for path, node in actual.items() if is_bytecode(path)}
    contents = {path: node.sha256 for path, node in sources.items()}
    return State(
        damage=differences(_expected(entries, manifest, python), sources),
        bytecode=differences(_expected_bytecode(folder, compiled, entries, python), compiled),
        lacking=tuple(item.path for item in entries if contents.get(item.path) != item.sha256),
    )


def is_bytecode(path: str) -> bool:
    """Whether it is of what the host itself compiled."""
    parts = path.split("/")
    return parts[0] == STAMP or CACHE in parts


def differences(expected: Mapping[str, Node], actual: Mapping[str, Node]) -> dict[str, str]:
    """Why each path that differs does; of what is too much only the topmost."""
    found = {path: _why(node, actual.get(path)) for path, node in expected.items() if actual.get(path) != node}
    extra = actual.keys() - expected.keys()
    going = extra | {path for path in found if expected[path].kind != "folder"}
    found.update({path: EXTRA for path in extra if not folders_of({path}) & going})
    return dict(sorted(found.items()))


def _why(expected: Node, actual: Node | None) -> str:
    if actual is None:
        return "missing"
    if actual.kind != expected.kind:
        return f"not a {expected.kind}"
    if actual.sha256 != expected.sha256:
        return "other content"
    if actual.mode != expected.mode:
        return f"mode {actual.mode:04o} instead of {expected.mode:04o}"
    if actual.owner != expected.owner:
        return f"owner {actual.owner} instead of {expected.owner}"
    return f"starts {actual.interpreter or 'no Python'} instead of {expected.interpreter or 'none'}"


def _expected(entries: list[Entry], manifest: str, python: Python) -> dict[str, Node]:
    nodes = dict.fromkeys((TOP, *folders_of({item.path for item in entries})), _FOLDER)
    for item in entries:
        interpreter = python.path if item.path.startswith(SCRIPTS) else ""
        nodes[item.path] = Node("file", item.mode, sha256=item.sha256, interpreter=interpreter)
    nodes[MANIFEST] = Node("file", FILE, sha256=sha256(manifest.encode()))
    return nodes


def bytecode_paths(entries: list[Entry], python: Python) -> set[str]:
    """The bytecode that this Python makes of the release."""
    return {python.cached(item.path) for item in entries if item.path.endswith(".py")}


def _expected_bytecode(
    folder: Path, actual: Mapping[str, Node], entries: list[Entry], python: Python
) -> dict[str, Node]:
    """What the stamp lists; a stamp of another Python, or of fewer files, tells nothing: then all of it is missing."""
    names = bytecode_paths(entries, python)
    nodes = {path: _FOLDER for path in folders_of(names) if path.endswith(CACHE)}
    listed = _listed(folder, actual, python)
    if listed.keys() != names:
        return {STAMP: Node("file", FILE), **nodes, **{path: Node("file", FILE) for path in names}}
    stamp = Node("file", FILE, sha256=actual[STAMP].sha256)
    return {STAMP: stamp, **nodes, **{path: Node("file", FILE, sha256=listed[path]) for path in names}}


def _listed(folder: Path, actual: Mapping[str, Node], python: Python) -> dict[str, str]:
    """The stamp's hashes by path; none unless it is of this Python."""
    if actual.get(STAMP, _FOLDER).kind != "file":
        return {}
    line, _, text = read(folder / STAMP).decode(errors="replace").partition("\n")
    return dict(_hashes(text)) if line == python.line() else {}


def _hashes(text: str) -> dict[str, str]:
    words = [line.split("  ") for line in text.splitlines()]
    return {item[-1]: item[0] for item in words}


def stamped(folder: Path) -> Python | None:
    """The Python that compiled the release in ``folder``; ``None`` if that isn't known."""
    try:
        return from_line(read(folder / STAMP).decode(errors="replace").partition("\n")[0])
    except OSError:
        return None


def manifest_of(folder: Path) -> str:
    """The MANIFEST of a release on the host, which must fit the folder's name."""
    try:
        text: str = read(folder / MANIFEST).decode(errors="replace")
    except OSError as error:
        raise ReleaseError(f"{folder} has no readable {MANIFEST} ({error}): install that release again") from error
    if sha256(text.encode())[:12] != folder.name.rpartition("-")[2]:
        raise ReleaseError(f"{folder / MANIFEST} doesn't fit the folder's name: install that release again")
    return text
