"""Edits of a YAML text at the places of a ``Document``; each returns the new text and leaves all else as it is."""

from __future__ import annotations

import re

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_document import Document, Entry, Place
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_scalars import written
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_tree import Mapping, Node, Scalar, Sequence

_LINE_END = re.compile("\r\n|\r|\n")
_COMMA = re.compile(r"(?:\s|#[^\r\n]*)*,[ \t]*")
_COMMENTS = re.compile(r"(?:[ ]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z))*")
_DOCUMENT_END = re.compile(r"(?<![^\r\n])\.\.\.(?!\S)")
_STEP = 2  # blanks a level in Flink's own files


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


def insert(document: Document, key: str, value: str, *, flat: bool) -> str:
    """Write a setting that is missing, ``value`` as it shall stand: as deep as there is a mapping for it."""
    if not isinstance(document.root, Mapping):
        return _begin(document, key, value, flat)
    places = [place for place in document.places if key.startswith(place.prefix) and not (flat and place.prefix)]
    for place in sorted(places, key=lambda place: -len(place.prefix)):
        rest = key.removeprefix(place.prefix)
        if rest not in place.keys:
            return _insert_at(
                document.text, place, rest, value, nested=not flat and rest.split(".")[0] not in place.keys
            )
    problem = (
        f"no place for {key!r}: its name is taken by something else, or by an alias; write that out, or take it out"
    )
    raise FlinkConfError.at(document.text, document.root.start, problem)


def _begin(document: Document, key: str, value: str, flat: bool) -> str:
    text, root = document.text, document.root
    if root:  # a null, perhaps an empty one, perhaps with the document's end behind it
        text = text[: root.start] + text[root.end :]
    end = _DOCUMENT_END.search(text)
    return insert_lines(text, end.start() if end else len(text), _lines(key, value, 0, 0 if flat else _STEP))


def _insert_at(text: str, place: Place, rest: str, value: str, *, nested: bool) -> str:
    mapping = place.mapping
    if mapping.flow:
        return insert_item(text, mapping, f"{written(rest, key=True)}: {value}")
    indentation = _indentation(text, mapping)
    step = (indentation // place.depth if place.depth else 0) or _STEP
    index = after_line(text, mapping.end)
    if not place.depth and _COMMENTS.fullmatch(text, index):
        index = len(text)
    return insert_lines(text, index, _lines(rest, value, indentation, step if nested else 0))


def _indentation(text: str, mapping: Mapping) -> int:
    key = mapping.pairs[0][0]
    line = text[_line_start(text, key.start) :]
    return len(line) - len(line.lstrip(" "))


def _lines(key: str, value: str, indentation: int, step: int) -> list[str]:
    """One line, or with a step a line for each part of the key."""
    parts = key.split(".") if step else [key]
    keys = [" " * (indentation + step * level) + written(part, key=True) + ":" for level, part in enumerate(parts)]
    return [*keys[:-1], f"{keys[-1]} {value}"]


def insert_item(text: str, collection: Mapping | Sequence, item: str) -> str:
    """Write one more item behind the last one of ``[…]`` or ``{…}``."""
    ends = [span[1] for span in _spans(collection)]
    index, comma = (ends[-1], ", ") if ends else (collection.inside, "")
    return text[:index] + comma + item + text[index:]


def _spans(collection: Mapping | Sequence) -> list[tuple[int, int]]:
    if isinstance(collection, Mapping):
        return [(key.start, max(key.end, value.end)) for key, value in collection.pairs]
    return [(item.start, item.end) for item in collection.items]


def cut_item(text: str, collection: Mapping | Sequence, index: int) -> str:
    """Take an item out of ``[…]`` or ``{…}``, with one comma."""
    spans = _spans(collection)
    start, end = spans[index]
    comma = _COMMA.match(text, end)
    if comma:
        end = comma.end()
    elif index:
        start = spans[index - 1][1]
    return text[:start] + text[end:]


def cut(text: str, entry: Entry) -> str:
    """Take out a setting, with the mappings that would be empty without it; blank lines and lines of comment stay."""
    depth = len(entry.steps) - 1
    while depth and len(entry.steps[depth].mapping.pairs) == 1:
        depth -= 1
    step, leaf = entry.steps[depth], entry.steps[-1]
    if step.mapping.flow:
        return cut_item(text, step.mapping, step.index)
    last = len(text[: step.value.end].rstrip())  # blank lines behind a block scalar are its own, but nobody's text
    start, end = _line_start(text, step.key.start), after_line(text, last)
    above = re.findall("[^\r\n]*(?:\r\n|\r|\n)", text[start : _line_start(text, leaf.key.start)])
    indentation = " " * _indentation(text, step.mapping)  # or a block scalar before them would swallow the comments
    lines = [line.lstrip(" ") for line in above]
    comments = [indentation * (line[0] == "#") + line for line in lines if line[0] in "#\r\n"]
    return text[:start] + "".join(comments) + _opening(text, start, end) + text[end:]


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
        raise FlinkConfError.at(
            text, last.start, "a list of 'external-resources' that can't be added to; write it as [a, b]"
        )
    return insert_lines(text, after_line(text, last.end), [bullet + written(name)])


def cut_from_list(text: str, names: Sequence, index: int) -> str:
    """Take out a name that isn't the only one."""
    if names.flow:
        return cut_item(text, names, index)
    item = names.items[index]
    return text[: _line_start(text, item.start)] + text[after_line(text, item.end) :]
