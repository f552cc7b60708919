"""``external-resources`` as text: names with semicolons between them, perhaps quoted; ``none`` alone is no name."""

from __future__ import annotations

import re

KEY = "external-resources"
NOTHING = ("", "[]")  # names to Flink, if alone, where quotes and lists mean nothing; to nobody else
BLANKS = "".join(map(chr, range(0x21)))  # what java.lang.String.trim takes off; a no-break space is not among it
_NONE = "none"
_QUOTED = re.compile(r"""[\x00- ]*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)")[\x00- ]*""")
_PART = re.compile(r"""(?:^|(?<=;))([\x00- ]*(?:'(?:[^']|'')*'|"(?:[^"]|"")*")[^;]*|[^;]*)(?:;|$)""")
_ODD = re.compile(r"[\s,\[\]{}'\"]|\A\Z")


def split(text: str) -> list[str]:
    """Split it as Flink does; ValueError where quotes don't match."""
    return [] if text == _NONE else [_name(part) for part in _parts(text)]


def _parts(text: str) -> list[str]:
    """The names as they are written; semicolons at the start and at the end bound none."""
    inner = text.strip(BLANKS).removeprefix(";").removesuffix(";")
    return [match[1] for match in _PART.finditer(inner)] if inner else []


def _name(part: str) -> str:
    if part.strip(BLANKS)[:1] not in {"'", '"'}:
        return part.strip(BLANKS)
    quoted = _QUOTED.fullmatch(part)
    if not quoted:
        raise ValueError("quotes that don't match")
    return quoted[1].replace("''", "'") if quoted[2] is None else quoted[2].replace('""', '"')


def add(text: str, name: str) -> str:
    """Behind the others."""
    if not is_any(split(text)):
        return name
    return f"{text.rstrip(BLANKS).removesuffix(';')};{name}"


def drop(text: str, name: str) -> str:
    """Without it; the others stay as they are written."""
    kept = [part for part in _parts(text) if _name(part) != name]
    left = ";".join(kept).strip(BLANKS)
    return f"{left};" if left == _NONE else left  # which is a name only beside a semicolon


def is_any(names: list[str]) -> bool:
    """Whether there are names that somebody can have meant."""
    return len(names) > 1 or (names != [] and names[0] not in NOTHING)


def odd(names: list[str]) -> list[str]:
    """Those that Flink takes for one name, though whoever wrote them may have meant several."""
    return [name for name in names if _ODD.search(name)]
