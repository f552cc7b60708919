"""PyYAML's scanner, which splits a text into tokens, with YAML 1.2's rules where Flink's parser follows those.

There tabs are blanks within and behind plain scalars, ``?`` is a common character of theirs in ``[…]`` and ``{…}`` too
(as in URLs), anchors may hold more than letters of ASCII, and a block scalar is no less indented than its blank lines.
"""

from __future__ import annotations

import re

import yaml

_BLANKS = "\0 \t\r\n"
_BRACKETS = ",[]{}"
_NEVER_FIRST = _BRACKETS + "#&*!|>'\"%@`"
_NEVER_IN_ANCHORS = "&*./"
_COMMENT = re.compile(r" *(?:#[^\0\r\n]*)?")
_PLAIN = re.compile(r"(?:[^\0 \t\r\n:]+|:(?![\0 \t\r\n]))*")
_PLAIN_IN_BRACKETS = re.compile(r"(?:[^\0 \t\r\n:,\[\]{}]+|:(?![\0 \t\r\n,\[\]{}]))*")


class Loader(yaml.SafeLoader):
    """To be handed to ``yaml.parse``; of line breaks it knows those of ASCII alone.

    PyYAML goes letter by letter, which takes seconds for a file of some 100 KB that is read after each edit.
    """

    def forward(self, length: int = 1) -> None:
        """Go on; at once where no line can end."""
        if not self.buffer[self.pointer : self.pointer + length].isprintable():
            super().forward(length)
            return
        self.pointer += length
        self.index += length
        self.column += length

    def _length(self, pattern: re.Pattern[str]) -> int:
        """How far the pattern, which also matches nothing, holds from here."""
        found = pattern.match(self.buffer, self.pointer)
        return found.end() - self.pointer if found else 0

    def scan_to_next_token(self) -> None:
        """Skip blanks, comments and line ends."""
        if self.index == 0 and self.peek() == "\ufeff":
            self.forward()
        while True:
            self.forward(self._length(_COMMENT))
            if self.peek() not in "\r\n":
                return
            self.forward()
            self.allow_simple_key = self.allow_simple_key or not self.flow_level

    def check_key(self) -> bool:
        """Whether this ``?`` opens a key, and not a plain scalar."""
        return self.peek(1) in _BLANKS

    def check_plain(self) -> bool:
        """Whether a plain scalar begins here."""
        first, second = self.peek(), self.peek(1)
        if self.flow_level and first in "-?":
            return second not in _BLANKS + ",]"
        if first in "-?:":
            return not self.flow_level and second not in _BLANKS
        return first not in _BLANKS + _NEVER_FIRST

    def scan_plain(self) -> yaml.ScalarToken:
        """A plain scalar, its lines folded."""
        start = end = self.get_mark()
        indentation, words, blanks = self.indent + 1, "", [""]
        pattern = _PLAIN_IN_BRACKETS if self.flow_level else _PLAIN  # up to blanks and to what ends a plain scalar
        while blanks and self.peek() != "#" and (length := self._length(pattern)):
            words += "".join(blanks) + self.prefix(length)
            self.forward(length)
            end = self.get_mark()
            self.allow_simple_key = False
            blanks = self.scan_plain_spaces(indentation, start)
            if not self.flow_level and self.column < indentation:
                break
        return yaml.ScalarToken(words, True, start, end)

    def scan_plain_spaces(self, indent: int, start_mark: yaml.Mark) -> list[str]:
        """What stands for the blanks behind a word: themselves, or a folded line end."""
        length = 0
        while self.peek(length) in " \t":
            length += 1
        blanks = self.prefix(length)
        self.forward(length)
        if self.peek() in "\r\n":
            return super().scan_plain_spaces(indent, start_mark) or []
        return [blanks] if blanks else []

    def scan_block_scalar_indentation(self) -> tuple[list[str], int, yaml.Mark]:
        """Blank lines before the text of ``|`` or ``>``, with the indentation of the widest."""
        lines, widest, end = super().scan_block_scalar_indentation()
        if self.column < max(self.indent + 1, widest, 1) and self.column != self.indent:
            problem = "a block scalar without text, or with less indentation than the blank lines above it"
            raise yaml.scanner.ScannerError(None, None, problem, self.get_mark())
        return lines, widest, end

    def scan_anchor(self, TokenClass: type[yaml.AnchorToken | yaml.AliasToken]) -> yaml.Token:  # noqa: N803
        """The name behind ``&`` or ``*``."""
        start, length = self.get_mark(), 0
        self.forward()
        while (letter := self.peek(length)) not in _BLANKS + _BRACKETS + _NEVER_IN_ANCHORS:
            length += 1
        name = self.prefix(length)
        self.forward(length)
        if not name or letter in _NEVER_IN_ANCHORS:
            problem = "an anchor's or alias's name that is empty, or holds '&', '*', '.' or '/'"
            raise yaml.scanner.ScannerError(None, None, problem, self.get_mark())
        return TokenClass(name, start, self.get_mark())
