"""What is shown of a replaced file: the lines that change and none around them, since those may hold secrets."""

from __future__ import annotations

import difflib
import re

_LIST = re.compile(r"\[[^][{}]*\]")


def changes(path: str, before: bytes, after: bytes, *, flat: bool) -> str:
    """A unified diff without context; ``flat`` if each line of the file is one setting, whatever is in it.

    Line ends don't count: else what comes behind a last line without one would show that line, too.
    """
    old, new = (content.decode(errors="replace").splitlines() for content in (before, after))
    shown = [f"--- {path}", f"+++ {path}"]
    for tag, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            shown.append(f"@@ -{start + 1},{end - start} +{new_start + 1},{new_end - new_start} @@")
            shown += _hunk(old[start:end], new[new_start:new_end], flat)
    return "\n".join(shown) + "\n"


def _hunk(old: list[str], new: list[str], flat: bool) -> list[str]:
    if not flat and any(map(_is_shared, old + new)):
        return [f"({len(old)} -> {len(new)} lines are not shown, since other settings may stand in them, too)"]
    return [f"-{line}" for line in old] + [f"+{line}" for line in new]


def _is_shared(line: str) -> bool:
    """Whether more than one setting may stand in a line of YAML, behind a comma; one in a list parts no settings."""
    return "," in _LIST.sub("", line)
