"""PyYAML's scanner, which splits a text into tokens, with YAML 1.2's rules where Flink's parser follows those.

There tabs are blanks within and behind plain scalars, ``?`` is a common character of theirs in ``[…]`` and ``{…}`` too
(as in URLs), anchors may hold more than letters of ASCII, and a block scalar is no less indented than its blank lines.
"""

from __future__ import annotations

import yaml

_BLANKS = "\0 \t\r\n"
_BRACKETS = ",[]{}"
_NEVER_FIRST = _BRACKETS + "#&*!|>'\"%@`"
_NEVER_IN_ANCHORS = "&*./"


class Loader(yaml.SafeLoader):
    """To be handed to ``yaml.parse``; of line breaks it knows those of ASCII alone."""

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
        while blanks and self.peek() != "#" and (length := self._plain_length()):
            words += "".join(blanks) + self.prefix(length)
            self.forward(length)
            end = self.get_mark()
            self.allow_simple_key = False
            blanks = self.scan_plain_spaces(indentation, start)
            if not self.flow_level and self.column < indentation:
                break
        return yaml.ScalarToken(words, True, start, end)

    def _plain_length(self) -> int:
        """How far the text goes on without blanks, and without what ends a plain scalar."""
        ends, length = (_BRACKETS if self.flow_level else ""), 0
        while (letter := self.peek(length)) not in _BLANKS + ends:
            if letter == ":" and self.peek(length + 1) in _BLANKS + ends:
                break
            length += 1
        return length

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
