"""``flink-conf.yaml``, which Flink reads up to 1.20: one ``key: value`` a line, which only looks like YAML.

Flink's parser never fails: it cuts each line at its first ``#``, splits it at the first ``": "`` (quotes mean nothing),
skips what can't be split, and takes the last of several lines with the same key. The text here holds a byte a
character, so that every byte survives, whatever its encoding.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf_names as names_of
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_edit import insert_lines
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError

_LINE = re.compile("[^\r\n]*(?:\r\n|\r|\n|\\Z)")
NAME = "flink-conf.yaml"
_BOM = "\xef\xbb\xbf"


@dataclass(frozen=True)
class Line:
    """``text[start:end]``, its line end included; without a key where Flink skips it."""

    number: int
    start: int
    end: int
    key: str = ""
    value: str = ""
    value_start: int = 0
    skipped: bool = False

    @property
    def value_end(self) -> int:
        """Behind the value, before blanks and comment."""
        return self.value_start + len(self.value)


@dataclass
class FlatFile:
    """The file's bytes, as characters, while it is edited."""

    text: str

    @classmethod
    def of(cls, content: bytes) -> FlatFile:
        """Any bytes will do."""
        return cls(content.decode("latin-1"))

    @property
    def content(self) -> bytes:
        """The file's bytes."""
        return self.text.encode("latin-1")

    @property
    def settings(self) -> dict[str, str]:
        """What Flink takes; texts are read as UTF-8, as Flink does unless its locale says otherwise."""
        return {_shown(line.key): _shown(line.value) for line in self._settings()}

    @property
    def names(self) -> list[str]:
        """The names in ``external-resources``."""
        found = self._find(names_of.KEY)
        try:
            return names_of.split(_shown(found[-1].value)) if found else []
        except ValueError as error:
            raise self.refuse(
                names_of.KEY, f"{names_of.KEY!r} has {error}, so no TaskManager starts; mend it here"
            ) from error

    @property
    def warnings(self) -> list[str]:
        """Of lines that mean something else to Flink than they seem to."""
        known: dict[str, int] = {}
        found = [warning for line in self._lines() if (warning := _warning(line, known))]
        return [str(FlinkConfError(problem, number, 1)) for number, problem in found]

    def refuse(self, key: str, problem: str) -> FlinkConfError:
        """The error at the key's last line."""
        found = self._find(key)
        return FlinkConfError.at(self.text, found[-1].value_start, problem) if found else FlinkConfError(problem)

    def put(self, settings: Mapping[str, str], flat: Collection[str] = ()) -> None:
        """Make each the only line with its key: the first one, among whose neighbours and comments it belongs."""
        del flat  # there is no other spelling
        for key, value in settings.items():
            self._put(key, value)

    def _put(self, key: str, value: str) -> None:
        if _parse(1, 0, f"{key}: {value}").value != value:
            raise FlinkConfError(f"{key!r} can't be {value!r}, since Flink cuts it at '#' in {NAME}; leave that out")
        found = self._find(key)
        if not found:
            self.text = insert_lines(self.text, len(self.text), [f"{key}: {value}"])
            return
        for line in reversed(found[1:]):
            self._cut(line)
        first = found[0]
        self.text = self.text[: first.value_start] + value + self.text[first.value_end :]

    def cut(self, keys: Iterable[str]) -> None:
        """Take out every line with one of the keys."""
        for key in keys:
            for line in reversed(self._find(key)):
                self._cut(line)

    def add_name(self, name: str) -> None:
        """Write the name behind the others."""
        found = self._find(names_of.KEY)
        self._put(names_of.KEY, names_of.add(found[-1].value, name) if found else name)

    def drop_name(self, name: str) -> None:
        """Take out the name, and the whole setting when it is the only one."""
        if name not in self.names:
            return
        value = names_of.drop(self._find(names_of.KEY)[-1].value, name)
        if value:
            self._put(names_of.KEY, value)
        else:
            self.cut([names_of.KEY])

    def _cut(self, line: Line) -> None:
        self.text = self.text[: line.start] + self.text[line.end :]

    def _find(self, key: str) -> list[Line]:
        return [line for line in self._lines(key) if line.key == key]

    def _settings(self) -> list[Line]:
        return [line for line in self._lines() if line.key]

    def _lines(self, part: str = "") -> Iterator[Line]:
        """The lines that hold that part."""
        for number, match in enumerate(_LINE.finditer(self.text), start=1):
            if part in match[0]:
                yield _parse(number, match.start(), match[0])


def _parse(number: int, start: int, text: str) -> Line:
    end = start + len(text)
    setting = text.partition("#")[0].strip(names_of.BLANKS)
    before, colon, after = setting.partition(": ")
    key, value = before.strip(names_of.BLANKS), after.strip(names_of.BLANKS)
    if not key or not value:
        return Line(number, start, end, skipped=bool(setting))
    offset = text.index(setting) + len(before) + len(colon)
    return Line(number, start, end, key, value, start + offset + after.index(value))


def _shown(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")


def _warning(line: Line, known: dict[str, int]) -> tuple[int, str] | None:
    if line.skipped:
        return line.number, "no 'key: value' with a blank behind the colon; Flink skips it"
    if line.key.startswith(_BOM):
        return (
            line.number,
            f"a byte order mark, which is part of the key to Flink, so that {_shown(line.key)[1:]!r} is not set",
        )
    if line.key[:1] in {"'", '"'}:
        return line.number, f"quotes, which are part of the key to Flink, so that {_shown(line.key)[1:-1]!r} is not set"
    if line.key in known:
        return line.number, f"{_shown(line.key)!r} again, first in line {known[line.key]}; the last one counts"
    if line.key:
        known[line.key] = line.number
    return None
