"""Write the tables of docs/flink-config.md from the cases of its tests: ``python -m tools.flink_config_table``."""

from __future__ import annotations

import re
from pathlib import Path

from tests.flinkconf.answers import Answer, Loads
from tests.flinkconf.cases import DOCUMENTED
from tests.flinkconf.folders import FOLDERS, GENERATIONS
from tests.flinkconf.readers import FLAT, YAML

DOCUMENT = Path(__file__).parents[1] / "docs/flink-config.md"

_SHOWN = {"\t": "⇥", "\r": "␍", "\ufeff": "<BOM>", "\udcf6": "<F6>"}
_MARK = "<!-- {}: made by tools/flink_config_table.py -->\n"
_END = "<!-- end -->\n"


def tables() -> dict[str, str]:
    """The tables as Markdown, by their names in the document."""
    return {"folders": _folders(), "cases": _cases()}


def written(text: str) -> str:
    """The document's text with the tables as they should be."""
    for name, table in tables().items():
        before, mark, rest = text.partition(_MARK.format(name))
        text = f"{before}{mark}{table}{_END}{rest.partition(_END)[2]}"
    return text


def _folders() -> str:
    rows = [[folder.name, *map(_which, folder.answers)] for folder in FOLDERS]
    return _table(["the folder holds", *GENERATIONS], rows)


def _which(answer: Answer) -> str:
    if isinstance(answer, Loads):
        return f"`{answer.settings['read']}`" if answer.settings else "nothing"
    return f"**refused**: {_code('… ' + answer.reason)}"


def _cases() -> str:
    rows = []
    for case in DOCUMENTED:
        flat, yaml = _outcome(case.flat), _outcome(case.yaml)
        rows.append([case.name, _text(case.content), flat, "the same" if yaml == flat else yaml])
    return _table(["", "text", f"`{FLAT}`", f"`{YAML}`"], rows)


def _text(content: bytes) -> str:
    lines = content.decode(errors="surrogateescape").removesuffix("\n").split("\n")
    return "<br>".join(_code(line) if line else "" for line in lines)


def _outcome(answer: Answer) -> str:
    if not isinstance(answer, Loads):
        place = " at line {}, column {}".format(*answer.place) if answer.place else ""
        return f"**refused**{place}: {_code(answer.reason)}"
    skipped = f"line{'s'[: len(answer.skipped) > 1]} {', '.join(map(str, answer.skipped))} skipped"
    parts = [_seen(answer), skipped if answer.skipped else "", f"warning: {_code(answer.says)}" if answer.says else ""]
    return "; ".join(filter(None, parts))


def _seen(answer: Loads) -> str:
    """The external resources where a file names some that have amounts, else the settings."""
    if any(key.endswith(".amount") for key in answer.settings):
        return ", ".join(f"{amount} {name}" for name, amount in answer.resources.items()) or "no resources"
    return ", ".join(_code(f"{key}: {value}") for key, value in answer.settings.items()) or "nothing"


def _code(text: str) -> str:
    shown = re.sub("[\t\r\ufeff\udcf6]", lambda found: _SHOWN[found[0]], text).replace("|", "\\|")
    return f"`{shown}`"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def main() -> None:
    """Bring the document up to date."""
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
