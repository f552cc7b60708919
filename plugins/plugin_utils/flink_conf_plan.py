"""What has to become of Flink's configuration on a host: the file that counts, and those that the role wrote before."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import FILES, ChoiceError, agreed, choose
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_notes import Note, parse
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import NAMES


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

    ``made`` are notes to take before, ``unmade`` to strike off afterwards, ``left`` the names that they name but that
    are somebody else's by now.
    """

    path: str
    format: str = ""
    content: bytes = b""
    differs: bool = False
    made: list[str] = field(default_factory=list)
    unmade: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    fault: str = ""


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
        return Plan(path, chosen, fault=f"{path} is what Flink reads, and is missing; make it, for none is made here")
    before, after = parse(notes, path), [Note.of(name, wanted, path) for name in names]
    return _plan(
        Plan(
            path, chosen, folder.content.get(FILES[chosen], b""), made=_but(after, before), unmade=_but(before, after)
        ),
        [note for note in before if note.name not in names],
        lambda content, gone: flink_conf.merge(content, chosen, wanted, gone),
    )


def clearing(path: str, content: bytes | None, notes: Iterable[str]) -> Plan:
    """A file without what the role wrote; one that is gone has no content."""
    file_format = next(each for each, name in FILES.items() if name == posixpath.basename(path))
    own = parse(notes, path)
    plan = Plan(path, file_format, content or b"", unmade=_but(own, []))
    return _plan(plan, own, lambda content, gone: flink_conf.remove(content, file_format, gone))


def _plan(plan: Plan, dropped: list[Note], edit: Callable[[bytes, list[str]], bytes]) -> Plan:
    """Edit the content, without those of the dropped that still are the role's."""
    try:
        reading = flink_conf.read(plan.content, plan.format)
        gone = {note.name for note in dropped if note.holds(reading.settings)}
        content = edit(plan.content, sorted(gone))
    except FlinkConfError as error:
        return Plan(plan.path, plan.format, plan.content, fault=f"{plan.path}: {error}")
    left = sorted({note.name for note in dropped if note.name in reading.resources} - gone)
    return Plan(plan.path, plan.format, content, content != plan.content, plan.made, plan.unmade, left)


def _but(notes: Iterable[Note], others: Iterable[Note]) -> list[str]:
    """The texts of those notes that are not among the others."""
    return [str(note) for note in notes if note not in [*others]]
