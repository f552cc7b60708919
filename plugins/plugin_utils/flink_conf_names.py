"""``external-resources`` as text: names with semicolons between them, perhaps quoted; ``none`` alone is no name."""

from __future__ import annotations

import re

KEY = "external-resources"
_NONE = "none"
_QUOTED = re.compile(r"""\s*(?:'((?:[^']|'')*)'|"((?:[^"]|"")*)")\s*""")
_PART = re.compile(r"""(?:^|(?<=;))(\s*(?:'(?:[^']|'')*'|"(?:[^"]|"")*")[^;]*|[^;]*)(?:;|$)""")
_ODD = re.compile(r"[\s,\[\]{}'\"]|\A\Z")


def split(text: str) -> list[str]:
    """Split it as Flink does; ValueError where quotes don't match."""
    names = [_name(part) for part in _parts(text)]
    return [] if names == [_NONE] else names


def _parts(text: str) -> list[str]:
    """The names as they are written; semicolons at the start and at the end bound none."""
    inner = text.strip().removeprefix(";").removesuffix(";")
    return [match[1] for match in _PART.finditer(inner)] if inner else []


def _name(part: str) -> str:
    if part.strip()[:1] not in {"'", '"'}:
        return part.strip()
    quoted = _QUOTED.fullmatch(part)
    if not quoted:
        raise ValueError("quotes that don't match")
    return quoted[1].replace("''", "'") if quoted[2] is None else quoted[2].replace('""', '"')


def add(text: str, name: str) -> str:
    """Behind the others."""
    if not split(text):
        return name
    return f"{text.rstrip().removesuffix(';')};{name}"


def drop(text: str, name: str) -> str:
    """Without it; the others stay as they are written."""
    kept = [part for part in _parts(text) if _name(part) != name]
    return ";".join(kept).strip()


def odd(names: list[str]) -> list[str]:
    """Those that Flink takes for one name, though whoever wrote them may have meant several."""
    return [name for name in names if _ODD.search(name)]
