"""``config.yaml``, which Flink reads since 1.19: YAML 1.2, with keys nested, flat, or both."""

from __future__ import annotations

import codecs
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf_edit as edit
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf_names as names_of
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_document import Document, Entry, document, text_of
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_scalars import written
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_tree import Sequence, grow

_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}


@dataclass
class YamlFile:
    """The file's text while it is edited; ``bom`` and ``encoding`` are put back."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""

    def __post_init__(self) -> None:
        """Errors shall point into the file as it is, not into what has been edited."""
        self._original = self.text

    @classmethod
    def of(cls, content: bytes) -> YamlFile:
        """Decode it as Flink does."""
        bom = next((bom for bom in _BOMS if content.startswith(bom)), b"")
        encoding = _BOMS.get(bom, "utf-8")
        try:
            return cls(content[len(bom) :].decode(encoding), encoding, bom)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode(encoding)
            problem = f"a byte that is no {encoding.upper()}, so Flink refuses the file; save it as UTF-8"
            raise FlinkConfError.at(before, len(before), problem) from None

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return self.bom + self.text.encode(self.encoding)

    @property
    def warnings(self) -> list[str]:
        """Of settings that are overridden by another spelling further down."""
        known: set[str] = set()
        again: list[str] = []
        for entry in self._document.entries:
            if entry.key in known:
                again.append(
                    str(_at(self.text, entry, f"{entry.key!r} in another spelling; this one counts, being the last"))
                )
            known.add(entry.key)
        return again

    @property
    def settings(self) -> dict[str, str]:
        """What Flink takes."""
        return self._document.settings

    @property
    def names(self) -> list[str]:
        """The names in ``external-resources``."""
        entry = self._names_entry()
        if not entry:
            return []
        sequence = _sequence(entry)
        if sequence:
            shown = [text_of(item) for item in sequence.items]
            return [entry.text] if None in shown else [text for text in shown if text is not None]
        try:
            return names_of.split(entry.text)
        except ValueError as error:
            raise self.refuse(
                names_of.KEY, f"{names_of.KEY!r} has {error}, so no TaskManager starts; mend it here"
            ) from error

    def refuse(self, key: str, problem: str) -> FlinkConfError:
        """The error at the key's last spelling."""
        found = document(self._original).find(key)
        return _at(self._original, found[-1], problem) if found else FlinkConfError(problem)

    def put(self, settings: Mapping[str, str], flat: Collection[str]) -> None:
        """Make these the only spellings of their keys: the first ones, among whose neighbours they belong."""
        found = {key: self._document.find(key) for key in settings}
        differing = {key: value for key, value in settings.items() if [each.value for each in found[key]] != [value]}
        self._cut([entry for key in differing for entry in found[key][1:]])
        missing = {key: written(value) for key, value in differing.items() if not self._put(key, value)}
        if missing:
            self.text = edit.insert(self._document, missing, flat)

    def _put(self, key: str, value: str) -> bool:
        """Write it over what is there."""
        found = self._document.find(key)
        return bool(found) and self._replace(found[0], value)

    def cut(self, keys: Iterable[str]) -> None:
        """Take out every spelling of the keys."""
        self._cut([entry for key in keys for entry in self._document.find(key)])

    def add_name(self, name: str) -> None:
        """Write the name behind the others."""
        entry = self._names_entry()
        if not entry:
            self.text = edit.insert(self._document, {names_of.KEY: f"[{written(name)}]"}, [names_of.KEY])
            return
        node = self._untied(entry).steps[-1].value
        if isinstance(node, Sequence):
            self.text = edit.add_to_list(self.text, node, name)
            return
        inner = _sequence(entry)
        self._replace(entry, edit.add_to_list(entry.text, inner, name) if inner else names_of.add(entry.text, name))

    def drop_name(self, name: str) -> None:
        """Take out the name wherever it stands, and the whole setting when it is the only one."""
        while (names := self.names).count(name):
            entry = self._document.find(names_of.KEY)[-1]
            if set(names) == {name}:
                self._cut([entry])
            else:
                self._drop(self._untied(entry), name, names.index(name))

    def _drop(self, entry: Entry, name: str, index: int) -> None:
        node, value, inner = entry.steps[-1].value, entry.text, _sequence(entry)
        if isinstance(node, Sequence):
            self.text = edit.cut_from_list(self.text, node, index)
        else:
            self._replace(entry, edit.cut_from_list(value, inner, index) if inner else names_of.drop(value, name))

    @property
    def _document(self) -> Document:
        try:
            return document(self.text)
        except FlinkConfError as error:
            if self.text == self._original:
                raise
            raise FlinkConfError.of_harm(f"the file ({error.problem})") from error

    def _names_entry(self) -> Entry | None:
        found = self._document.find(names_of.KEY)
        return found[-1] if found else None

    def _replace(self, entry: Entry, value: str) -> bool:
        """Write the value where it stands; or take it out, where nothing can stand in its place."""
        text = edit.replace(self.text, self._untied(entry).steps[-1].value, value)
        if text is None:
            self._cut([entry])
            return False
        self.text = text
        return True

    def _cut(self, entries: list[Entry]) -> None:
        if entries:
            self.text = edit.cut(self.text, [self._untied(entry) for entry in entries])

    def _untied(self, entry: Entry) -> Entry:
        if entry.tied:
            problem = f"{entry.key!r} is to change, but an anchor ties it to other settings; write its value out"
            raise self.refuse(entry.key, problem)
        return entry


def _at(text: str, entry: Entry, problem: str) -> FlinkConfError:
    return FlinkConfError.at(text, entry.steps[-1].key.start, problem)


def _sequence(entry: Entry) -> Sequence | None:
    """The list, or the one that stands in a text (or behind an alias): Flink reads such a text as YAML, too."""
    node = entry.steps[-1].value
    if isinstance(node, Sequence):
        return node
    try:
        root = grow(entry.text).root
    except FlinkConfError:
        return None
    return root if isinstance(root, Sequence) else None
