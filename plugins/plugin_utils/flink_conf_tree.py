"""YAML as a tree whose nodes know where they stand, so that a text can be edited in places instead of written anew.

The tree keeps what composing loses: each alias stands where it is written, and plain scalars are told from quoted ones.
PyYAML, which Ansible brings along, splits the text into events, by the rules of ``flink_conf_scanner``. What values
mean is for ``flink_conf_scalars`` to say.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Union

import yaml
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_scanner import Loader

_LINE_BREAKS_OF_YAML_1_1 = "\x85\u2028\u2029"  # to PyYAML; common characters to Flink, which reads YAML 1.2
_PRIVATE_USE = range(0xE000, 0xF900)  # what stands in for them while the text is split
_MOST_CHARACTERS = 3 * 1024 * 1024  # snakeyaml-engine's LoadSettings: codePointLimit
_MOST_ALIASES = 50  # maxAliasesForCollections, of collections alone
_TAGS = {"Mapping": (None, "!", "tag:yaml.org,2002:map"), "Sequence": (None, "!", "tag:yaml.org,2002:seq")}
_SCALAR_TAGS = (None, "!", "tag:yaml.org,2002:str")
_TAB = "found character '\\t' that cannot start any token"
_SEEN = re.compile("(?:, but found|(?<=escape character)|(?<=tag handle)|(?<=can't decode)) (?!'<).*")


@dataclass(frozen=True, eq=False)
class Scalar:
    """``text[start:end]``, with its anchor and tag; ``style`` is the quote, ``|`` or ``>``, or empty."""

    start: int
    end: int
    value: str
    style: str
    plain: bool


@dataclass(frozen=True, eq=False)
class Alias:
    """A node that stands elsewhere."""

    start: int
    end: int
    target: Scalar | Sequence | Mapping


@dataclass(frozen=True, eq=False)
class Sequence:
    """``[…]``, whose first item could stand at ``inside``, or a block, which ends where its last item does."""

    start: int
    end: int
    inside: int
    flow: bool
    items: tuple[Node, ...]


@dataclass(frozen=True, eq=False)
class Mapping:
    """``{…}`` or a block, as a sequence."""

    start: int
    end: int
    inside: int
    flow: bool
    pairs: tuple[tuple[Node, Node], ...]


Node = Union[Scalar, Alias, Sequence, Mapping]


@dataclass(frozen=True)
class Tree:
    """``root`` is None where there is no document; ``shared`` are the nodes that aliases stand for."""

    root: Node | None
    shared: frozenset[Node]


def grow(text: str) -> Tree:
    """Read the text, which has no BOM; refuses what is no YAML, more than one document, and tags that Flink refuses."""
    if len(text) > _MOST_CHARACTERS:
        raise FlinkConfError(f"more than {_MOST_CHARACTERS} characters, which Flink refuses; shorten the file")
    return _Grower(text).tree()


class _Grower:
    def __init__(self, text: str) -> None:
        self._text = text
        unused = (letter for letter in map(chr, _PRIVATE_USE) if letter not in text)
        self._stand_ins = "".join(islice(unused, len(_LINE_BREAKS_OF_YAML_1_1)))
        self._events = self._split()
        self._anchors: dict[str, Node | None] = {}  # None while what it names is under way
        self._shared: set[Node] = set()
        self._collection_aliases = 0

    def tree(self) -> Tree:
        root = None
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root:
                    raise self._refusal(
                        event, "a second document, which Flink refuses; take out this '---' and what follows"
                    )
                root = self._node(next(self._events))
        return Tree(root, frozenset(self._shared))

    def _split(self) -> Iterator[yaml.Event]:
        text = self._text.translate(str.maketrans(_LINE_BREAKS_OF_YAML_1_1, self._stand_ins))
        try:
            yield from yaml.parse(text, Loader=Loader)
        except yaml.reader.ReaderError as error:
            problem = f"character U+{error.character:04X}, which YAML does not allow; take it out"
            raise FlinkConfError.at(self._text, error.position, problem) from None
        except yaml.MarkedYAMLError as error:  # whose own text shows lines of the file, and Ansible shows causes
            mark = error.problem_mark or error.context_mark
            raise FlinkConfError.at(self._text, mark.index if mark else 0, _explain(error)) from None

    def _node(self, event: yaml.Event) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        assert isinstance(event, yaml.NodeEvent)
        if event.anchor:
            self._anchors[event.anchor] = None
        node = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._collection(event)
        if event.anchor:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, event: yaml.AliasEvent) -> Alias:
        target = self._anchors.get(event.anchor or "")
        if target is None or isinstance(target, Alias):
            raise self._refusal(event, "an alias of nothing, or of what it stands in; write the value out")
        self._shared.add(target)
        self._collection_aliases += not isinstance(target, Scalar)
        if self._collection_aliases > _MOST_ALIASES:
            raise self._refusal(
                event, f"more than {_MOST_ALIASES} aliases of collections, which Flink refuses; write some out"
            )
        return Alias(*_span(event), target)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        self._check_tag(event, event.tag, _SCALAR_TAGS)
        value = (event.value or "").translate(str.maketrans(self._stand_ins, _LINE_BREAKS_OF_YAML_1_1))
        value = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # escapes of halves, as of JSON
        plain = event.style is None and event.tag is None
        return Scalar(*_span(event), value, event.style or "", plain)

    def _collection(self, event: yaml.NodeEvent) -> Mapping | Sequence:
        assert isinstance(event, yaml.CollectionStartEvent)
        kind: type[Mapping | Sequence] = Mapping if isinstance(event, yaml.MappingStartEvent) else Sequence
        self._check_tag(event, event.tag, _TAGS[kind.__name__])
        start, inside = _span(event)
        flow = bool(event.flow_style)
        nodes: list[Node] = []
        while not isinstance(last := next(self._events), yaml.CollectionEndEvent):
            nodes.append(self._node(last))
        end = _span(last)[1] if flow or not nodes else nodes[-1].end
        if kind is Sequence:
            return Sequence(start, end, inside, flow, tuple(nodes))
        return Mapping(start, end, inside, flow, tuple(zip(nodes[::2], nodes[1::2])))

    def _check_tag(self, event: yaml.Event, tag: str | None, known: tuple[str | None, ...]) -> None:
        if tag not in known:
            raise self._refusal(event, "a tag, which Flink refuses or reads in its own way; take it out")

    def _refusal(self, event: yaml.Event, problem: str) -> FlinkConfError:
        return FlinkConfError.at(self._text, _span(event)[0], problem)


def _span(event: yaml.Event) -> tuple[int, int]:
    assert event.start_mark
    assert event.end_mark
    return event.start_mark.index, event.end_mark.index


def _explain(error: yaml.MarkedYAMLError) -> str:
    """Say it as PyYAML does, without what it shows of the text: that may be of a secret."""
    if error.problem == _TAB:
        return "a tab where Flink refuses it; put blanks in its place"
    said = _SEEN.sub("", ": ".join(part for part in (error.context, error.problem) if part))
    return f"no YAML, so Flink refuses the file ({said}); mend it here"
