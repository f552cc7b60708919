"""Edits of a YAML text at the places of a ``Document``; each returns the new text and leaves all else as it is."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Union

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_document import Document, Entry, Place, Step
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_scalars import written
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_tree import Mapping, Node, Scalar, Sequence

_LINE_END = re.compile("\r\n|\r|\n")
_COMMA = re.compile(r"(?:\s|#[^\r\n]*)*,[ \t]*")
_TABS = re.compile(r" *\t[ \t]*")  # which may stand behind plain text alone
_COMMENTS = re.compile(r"(?:[ ]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z))*")
_DOCUMENT_END = re.compile(r"(?<![^\r\n])\.\.\.(?!\S)")
_STEP = 2  # blanks a level in Flink's own files
Branch = dict[str, Union[str, "Branch"]]  # settings by the parts of their keys


def line_end(text: str) -> str:
    """The text's own line end: that of its first line."""
    found = _LINE_END.search(text)
    return found[0] if found else "\n"


def _line_start(text: str, index: int) -> int:
    return max(text.rfind("\n", 0, index), text.rfind("\r", 0, index)) + 1


def after_line(text: str, index: int) -> int:
    """Where the next line begins; there already behind a block scalar, which ends with its lines."""
    if index and text[index - 1] in "\r\n":
        return index
    found = _LINE_END.search(text, index)
    return found.end() if found else len(text)


def insert_lines(text: str, index: int, lines: list[str]) -> str:
    """Put whole lines there, behind a line that ends."""
    end = line_end(text)
    opening = end if index and text[index - 1] not in "\r\n" else ""
    return text[:index] + opening + "".join(line + end for line in lines) + text[index:]


def replace(text: str, node: Node, value: str) -> str | None:
    """Write the value over the node; None if that is a block, behind whose colon nothing can stand, or isn't there."""
    if (isinstance(node, (Mapping, Sequence)) and not node.flow) or node.start == node.end:
        return None
    style = node.style if isinstance(node, Scalar) else ""
    old = text[node.start : node.end]
    line_ends = old[len(old.rstrip()) :] if style in {"|", ">"} else ""
    return text[: node.start] + written(value, style if style in {"'", '"'} else "") + line_ends + text[node.end :]


def insert(document: Document, settings: dict[str, str], flat: Collection[str]) -> str:
    """Write missing settings, values as they shall stand, as deep as there are mappings for them; some keys flat."""
    if not isinstance(document.root, Mapping):
        return _begin(document, settings, flat)
    by_place: dict[Place, Branch] = {}
    for key, value in settings.items():
        place, parts = _place_of(document, key, key in flat)
        _grow(by_place.setdefault(place, {}), parts, value)
    return _insert_at(document.text, by_place)


def _place_of(document: Document, key: str, flat: bool) -> tuple[Place, list[str]]:
    places = [place for place in document.places if key.startswith(place.prefix) and not (flat and place.prefix)]
    for place in sorted(places, key=lambda place: -len(place.prefix)):
        if parts := _parts(place, key.removeprefix(place.prefix), flat):
            return place, parts
    problem = f"no place for {key!r}: something else, or an alias, has its name; write that out, or take it out"
    raise FlinkConfError.at(document.text, document.root.start if document.root else 0, problem)


def _parts(place: Place, rest: str, flat: bool) -> list[str]:
    """How the key can be written there, nested or in one line; nothing where both are taken."""
    parts = rest.split(".")
    if not flat and not place.mapping.flow and parts[0] not in place.keys:
        return parts
    return [rest] if rest not in place.keys else []


def _grow(branch: Branch, parts: list[str], value: str) -> None:
    for part in parts[:-1]:
        below = branch.setdefault(part, {})
        assert isinstance(below, dict)
        branch = below
    branch[parts[-1]] = value


def _begin(document: Document, settings: dict[str, str], flat: Collection[str]) -> str:
    text, root, branch = document.text, document.root, Branch()
    if root:  # a null, perhaps an empty one, perhaps with the document's end behind it
        text = text[: root.start] + text[root.end :]
    for key, value in settings.items():
        _grow(branch, [key] if key in flat else key.split("."), value)
    end = _DOCUMENT_END.search(text)
    return insert_lines(text, end.start() if end else len(text), list(_lines(branch, 0, _STEP)))


def _insert_at(text: str, by_place: dict[Place, Branch]) -> str:
    """From the end on, so that the places before stay; of blocks that end together the inner one goes on first."""
    by_index: dict[int, list[tuple[Place, Branch]]] = {}
    for place, branch in sorted(by_place.items(), key=lambda item: -item[0].depth):
        by_index.setdefault(_index(text, place), []).append((place, branch))
    for index, places in sorted(by_index.items(), reverse=True):
        mapping, branch = places[0][0].mapping, places[0][1]
        if mapping.flow:
            items = [f"{written(key, key=True)}: {value}" for key, value in branch.items()]
            text = insert_item(text, mapping, ", ".join(items))
        else:
            text = insert_lines(text, index, [line for place in places for line in _block(text, *place)])
    return text


def _block(text: str, place: Place, branch: Branch) -> Iterator[str]:
    """Lines in the block's own indentation."""
    indentation = _indentation(text, place.mapping)
    return _lines(branch, indentation, (indentation // place.depth if place.depth else 0) or _STEP)


def _index(text: str, place: Place) -> int:
    """Where further settings can stand: behind those of a block, but before one that only the file's end ends."""
    if place.mapping.flow:
        return _index_of_item(place.mapping)
    if _is_unended(text, place.mapping):
        *others, (start, _) = _spans(place.mapping)
        return after_line(text, others[-1][1]) if others else _line_start(text, start)
    index = after_line(text, place.mapping.end)
    return len(text) if not place.depth and _COMMENTS.fullmatch(text, index) else index


def _is_unended(text: str, node: Node) -> bool:
    """Whether it ends in a block scalar without a line end, of which one would become a part."""
    while isinstance(node, (Mapping, Sequence)) and not node.flow:
        node = node.pairs[-1][1] if isinstance(node, Mapping) else node.items[-1]
    is_block = isinstance(node, Scalar) and node.style in {"|", ">"}
    return is_block and text[-1] not in "\r\n" and not text[node.end :].strip(" ")


def _indentation(text: str, mapping: Mapping) -> int:
    key = mapping.pairs[0][0]
    line = text[_line_start(text, key.start) :]
    return len(line) - len(line.lstrip(" "))


def _lines(branch: Branch, indentation: int, step: int) -> Iterator[str]:
    """A line for each setting, and for each part of a key that leads to some."""
    for part, below in branch.items():
        opening = " " * indentation + written(part, key=True) + ":"
        if isinstance(below, str):
            yield f"{opening} {below}"
        else:
            yield opening
            yield from _lines(below, indentation + step, step)


def insert_item(text: str, collection: Mapping | Sequence, item: str) -> str:
    """Write one more item behind the last one of ``[…]`` or ``{…}``."""
    index = _index_of_item(collection)
    return text[:index] + (", " if _spans(collection) else "") + item + text[index:]


def _index_of_item(collection: Mapping | Sequence) -> int:
    spans = _spans(collection)
    return spans[-1][1] if spans else collection.inside


def _spans(collection: Mapping | Sequence) -> list[tuple[int, int]]:
    if isinstance(collection, Mapping):
        return [(key.start, max(key.end, value.end)) for key, value in collection.pairs]
    return [(item.start, item.end) for item in collection.items]


def cut_item(text: str, collection: Mapping | Sequence, index: int) -> str:
    """Take an item out of ``[…]`` or ``{…}``, with one comma."""
    spans = _spans(collection)
    start, end = spans[index]
    behind = _COMMA.match(text, end)
    if not behind:
        start = spans[index - 1][1] if index else start
        behind = _TABS.match(text, end) if text[:start].rstrip(" ")[-1] in "'\"]}[{" else None
    return text[:start] + text[behind.end() if behind else end :]


def cut(text: str, entries: list[Entry]) -> str:
    """Take out settings, with the mappings that would be empty without them; blank lines and lines of comment stay."""
    for step, leaves in sorted(_outermost(entries).items(), key=lambda item: -item[0].key.start):
        text = cut_item(text, step.mapping, step.index) if step.mapping.flow else _cut_lines(text, step, leaves)
    return text


def _outermost(entries: list[Entry]) -> dict[Step, list[Step]]:
    """The entries' own pairs by the widest ones that hold nothing else."""
    gone = {entry.steps[-1] for entry in entries}
    for depth in range(max(len(entry.steps) for entry in entries) - 1, 0, -1):
        for steps in (entry.steps for entry in entries if len(entry.steps) > depth):
            if gone.issuperset(Step(steps[depth].mapping, index) for index in range(len(steps[depth].mapping.pairs))):
                gone.add(steps[depth - 1])
    found: dict[Step, list[Step]] = {}
    for entry in sorted(entries, key=lambda entry: entry.steps[-1].key.start):
        found.setdefault(next(step for step in entry.steps if step in gone), []).append(entry.steps[-1])
    return found


def _cut_lines(text: str, step: Step, leaves: list[Step]) -> str:
    start = place = _line_start(text, step.key.start)
    indentation = " " * _indentation(text, step.mapping)  # or a block scalar before them would swallow the comments
    kept = ""
    for leaf in leaves:
        lines = re.findall("[^\r\n]*(?:\r\n|\r|\n)", text[place : _line_start(text, leaf.key.start)])
        bare = [line.lstrip(" ") for line in lines]
        kept += "".join(indentation * (line[0] == "#") + line for line in bare if line[0] in "#\r\n")
        last = len(text[: leaf.value.end].rstrip())  # blank lines behind a block scalar are its own, but nobody's text
        place = after_line(text, last)
    return text[:start] + kept + _opening(text, start, place) + text[place:]


def _opening(text: str, start: int, end: int) -> str:
    """A document's start, where only its end would be left, which Flink refuses."""
    found = _DOCUMENT_END.search(text, end)
    if not found:
        return ""
    lines = (text[:start] + text[end : found.start()]).splitlines()
    return "" if any(line.strip() and line.lstrip()[0] != "#" for line in lines) else f"---{line_end(text)}"


def add_to_list(text: str, names: Sequence, name: str) -> str:
    """One more name behind the others."""
    if names.flow:
        return insert_item(text, names, written(name))
    last = names.items[-1]
    bullet = text[_line_start(text, last.start) : last.start]
    if not re.fullmatch(" *- +", bullet):
        problem = "a list of 'external-resources' that can't be added to; write it as [a, b]"
        raise FlinkConfError.at(text, last.start, problem)
    return insert_lines(text, after_line(text, last.end), [bullet + written(name)])


def cut_from_list(text: str, names: Sequence, index: int) -> str:
    """Take out a name that isn't the only one."""
    if names.flow:
        return cut_item(text, names, index)
    item = names.items[index]
    return text[: _line_start(text, item.start)] + text[after_line(text, item.end) :]
