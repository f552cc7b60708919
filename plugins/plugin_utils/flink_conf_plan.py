"""What has to become of Flink's configuration on a host: the file that counts, and those that the role wrote before.

What the role wrote is in its record on the host, as a note for each external resource and file.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import FILES, ChoiceError, agreed, choose
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import NAMES

_NOTE = re.compile(r"flink resource (\S+) in (/.*)")


@dataclass(frozen=True)
class Folder:
    """Flink's configuration folder as it was found: contents by the files' names, and Flink's version, if known.

    ``told_version`` is what an operator says of it.
    """

    path: str
    content: Mapping[str, bytes]
    version: str
    told_version: str = ""


@dataclass(frozen=True)
class Plan:
    """What the file at ``path`` becomes; or the ``fault`` for which nothing is done, with its mend.

    ``made`` are notes to take before, ``unmade`` to strike off afterwards.
    """

    path: str
    file_format: str = ""
    content: bytes = b""
    differs: bool = False
    made: list[str] = field(default_factory=list)
    unmade: list[str] = field(default_factory=list)
    fault: str = ""


def written(notes: Iterable[str]) -> dict[str, list[str]]:
    """The names of external resources that the role wrote, by the file's path."""
    found: dict[str, list[str]] = {}
    for note in notes:
        if matched := _NOTE.fullmatch(note):
            found.setdefault(matched[2], []).append(matched[1])
    return found


def merging(
    folder: Folder, file_format: str, wanted: Mapping[str, str], notes: Iterable[str], *, make: bool = False
) -> Plan:
    """The file that Flink reads, with the settings that are wanted and without those that the role wrote else.

    One that is missing is a fault, unless it is to be made.
    """
    try:
        chosen = choose(folder.content, agreed(folder.told_version, folder.version), file_format)
    except ChoiceError as error:
        return Plan(folder.path, fault=f"{folder.path}: {error}")
    path, names = posixpath.join(folder.path, FILES[chosen]), wanted[NAMES].split(";")
    if FILES[chosen] not in folder.content and not make:
        return Plan(path, fault=f"{path} is what Flink reads, and is missing; make it, for none is made here")
    before = written(notes).get(path, [])
    gone = [name for name in before if name not in names]
    made = [_note(name, path) for name in names if name not in before]
    return _plan(
        Plan(path, chosen, made=made, unmade=[_note(name, path) for name in gone]),
        folder.content.get(FILES[chosen], b""),
        lambda content: flink_conf.merge(content, chosen, wanted, gone),
    )


def clearing(path: str, content: bytes | None, names: list[str]) -> Plan:
    """A file without those names; one that is gone, or is still in use by another path, has no content."""
    file_format = next(each for each, name in FILES.items() if name == posixpath.basename(path))
    plan = Plan(path, file_format, unmade=[_note(name, path) for name in names])
    if content is None:
        return plan
    return _plan(plan, content, lambda content: flink_conf.remove(content, file_format, names))


def _plan(plan: Plan, before: bytes, edit: Callable[[bytes], bytes]) -> Plan:
    try:
        content = edit(before)
    except FlinkConfError as error:
        return Plan(plan.path, plan.file_format, before, fault=f"{plan.path}: {error}")
    return Plan(plan.path, plan.file_format, content, content != before, plan.made, plan.unmade)


def _note(name: str, path: str) -> str:
    return f"flink resource {name} in {path}"
