"""The one error of reading and editing Flink's configuration files."""

from __future__ import annotations

import re

_LINE_END = re.compile("\r\n|\r|\n")


class FlinkConfError(ValueError):
    """What keeps a file from being read or edited, and the mend; ``line`` and ``column`` count from 1, 0 is nowhere.

    Its text names keys, and the names in ``external-resources``, but no other values, which may be secrets.
    """

    def __init__(self, problem: str, line: int = 0, column: int = 0) -> None:
        super().__init__(f"line {line}, column {column}: {problem}" if line else problem)
        self.problem = problem
        self.line = line
        self.column = column

    @classmethod
    def at(cls, text: str, index: int, problem: str) -> FlinkConfError:
        """The error at that character of the text."""
        lines = _LINE_END.split(text[:index])
        return cls(problem, len(lines), len(lines[-1]) + 1)

    @classmethod
    def of_harm(cls, what: str) -> FlinkConfError:
        """What comes of editing is not what it shall be, whatever the reason."""
        return cls(f"the file can't be edited without harm to {what}; edit it by hand")
