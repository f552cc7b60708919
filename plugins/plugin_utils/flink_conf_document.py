"""The settings of a YAML text as Flink flattens them, each with the places that lead to it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf_scalars as scalars
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_tree import (
    Alias,
    Mapping,
    Node,
    Scalar,
    Sequence,
    Tree,
    grow,
)


@dataclass(frozen=True)
class Step:
    """The pair of a mapping through which a setting is reached."""

    mapping: Mapping
    index: int

    @property
    def key(self) -> Node:
        """What stands before the colon."""
        return self.mapping.pairs[self.index][0]

    @property
    def value(self) -> Node:
        """What stands behind it."""
        return self.mapping.pairs[self.index][1]


@dataclass(frozen=True)
class Entry:
    """One setting where it is written; ``tied`` if an alias has part in it, so that others would change with it.

    Without a value (None) another spelling has to follow.
    """

    key: str
    value: str | None
    steps: tuple[Step, ...]
    tied: bool

    @property
    def text(self) -> str:
        """The value, or no text."""
        return self.value or ""


@dataclass(frozen=True)
class Place:
    """A mapping that can take further settings: ``prefix`` is the keys above it with their dots, ``keys`` its own.

    ``depth`` counts the mappings around it.
    """

    prefix: str
    depth: int
    mapping: Mapping
    keys: frozenset[str]


@dataclass(frozen=True)
class Document:
    """All settings in their order; of several spellings of one key Flink takes the last."""

    text: str
    root: Node | None
    entries: tuple[Entry, ...]
    places: tuple[Place, ...]

    @property
    def settings(self) -> dict[str, str]:
        """What Flink takes; refuses a setting that comes to nothing, as Flink does."""
        settings = {}
        for entry in {entry.key: entry for entry in self.entries}.values():
            if entry.value is None:
                problem = f"{entry.key!r} has no value, so Flink refuses the file; give it one or take it out"
                raise FlinkConfError.at(self.text, entry.steps[-1].value.start, problem)
            settings[entry.key] = entry.value
        return settings

    def find(self, key: str) -> list[Entry]:
        """Every spelling of the key."""
        return [entry for entry in self.entries if entry.key == key]


@lru_cache(maxsize=4)
def document(text: str) -> Document:
    """Read the text, which has no BOM; refuses what Flink can't even flatten."""
    tree = grow(text)
    flattener = _Flattener(text, tree)
    if isinstance(tree.root, Mapping):
        flattener.mapping(tree.root, "", (), False)
    elif tree.root and not _is_null(tree.root):
        raise FlinkConfError.at(text, tree.root.start, "no 'key: value', which Flink refuses; mend it here")
    return Document(text, tree.root, tuple(flattener.entries), tuple(flattener.places))


def _is_null(root: Node) -> bool:
    """A lone null is an empty file to Flink."""
    return isinstance(root, Scalar) and _resolve(root)[1] is None


def _resolve(node: Scalar) -> tuple[str, str | None]:
    return scalars.resolve(node.value) if node.plain else ("str", node.value)


class _Flattener:
    def __init__(self, text: str, tree: Tree) -> None:
        self._text = text
        self._shared = tree.shared
        self.entries: list[Entry] = []
        self.places: list[Place] = []

    def mapping(self, mapping: Mapping, prefix: str, steps: tuple[Step, ...], tied: bool) -> None:
        tied = tied or mapping in self._shared
        keys = self._keys(mapping)
        if not tied:
            self.places.append(Place(prefix, len(steps), mapping, frozenset(keys)))
        for index, key in enumerate(keys):
            step = Step(mapping, index)
            self._value(prefix + key, step.value, (*steps, step), tied)

    def _value(self, key: str, node: Node, steps: tuple[Step, ...], tied: bool) -> None:
        target = node.target if isinstance(node, Alias) else node
        if isinstance(target, Mapping):
            self.mapping(target, f"{key}.", steps, tied)
            return
        self._check_list(target)
        self.entries.append(Entry(key, text_of(target), steps, tied or node in self._shared))

    def _keys(self, mapping: Mapping) -> list[str]:
        nodes = [key for key, _ in mapping.pairs]
        keys = [self._key(node) for node in nodes]
        self._check_once(nodes, keys)
        return keys

    def _key(self, node: Node) -> str:
        target = node.target if isinstance(node, Alias) else node
        kind, text = _resolve(target) if isinstance(target, Scalar) else ("", None)
        if kind in {"str", "null"}:
            return text or ("null" if kind == "null" else "")  # Java's word for it
        raise FlinkConfError.at(self._text, node.start, "a key that is no text, so Flink refuses the file; quote it")

    def _check_list(self, node: Node) -> None:
        """Below a list keys may be of any kind, but each stands once; they are parts of a value."""
        if isinstance(node, Sequence):
            for item in node.items:
                self._check_list(item)
        if isinstance(node, Mapping):
            self._check_once([key for key, _ in node.pairs], [_shown(key) for key, _ in node.pairs], of_value=True)
            for _, value in node.pairs:
                self._check_list(value)

    def _check_once(self, nodes: list[Node], keys: list[str], *, of_value: bool = False) -> None:
        known: set[str] = set()
        for node, key in zip(nodes, keys):
            if key in known:
                name = "a key" if of_value or isinstance(node, Alias) else repr(key)
                problem = f"{name} again, so Flink refuses the file; keep one of them"
                raise FlinkConfError.at(self._text, node.start, problem)
            known.add(key)


def text_of(node: Node) -> str | None:
    """What Flink makes of a value or of a list's item, as a text; None for null."""
    target = node.target if isinstance(node, Alias) else node
    return _resolve(target)[1] if isinstance(target, Scalar) else _shown(target)


def _shown(node: Node) -> str:
    """The node as a part of a list, as Flink shows lists."""
    if isinstance(node, Alias):
        return _shown(node.target)
    if isinstance(node, Scalar):
        return scalars.list_item(*_resolve(node))
    if isinstance(node, Sequence):
        return f"[{', '.join(_shown(item) for item in node.items)}]"
    return "{" + ", ".join(f"{_shown_key(key)}: {_shown(value)}" for key, value in node.pairs) + "}"


def _shown_key(node: Node) -> str:
    target = node.target if isinstance(node, Alias) else node
    return _shown(target) if isinstance(target, Scalar) else f"? {_shown(target)} "
