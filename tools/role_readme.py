"""Write the table of variables in the role's README from its argument specs: ``python -m tools.role_readme``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROLE = Path(__file__).parents[1] / "roles/flink_gpu"
README = ROLE / "README.md"
_BEGIN, _END = "<!-- variables: made by tools/role_readme.py -->\n", "<!-- end of variables -->\n"


def options() -> dict[str, dict[str, Any]]:
    """Every variable of the role, as ``meta/argument_specs.yml`` describes it."""
    specs = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text(encoding="utf-8"))
    found: dict[str, dict[str, Any]] = specs["argument_specs"]["main"]["options"]
    return found


def table() -> str:
    """The variables as Markdown."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    lines += [f"| `{name}` | {_default(option)} | {_meaning(option)} |" for name, option in options().items()]
    return "\n".join(lines) + "\n"


def written(text: str) -> str:
    """The README's text with the table as it should be."""
    before, _, rest = text.partition(_BEGIN)
    return f"{before}{_BEGIN}{table()}{_END}{rest.partition(_END)[2]}"


def _default(option: dict[str, Any]) -> str:
    value = option.get("default")
    if value is None or value == "":
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _meaning(option: dict[str, Any]) -> str:
    texts = option["description"]
    text = " ".join(texts) if isinstance(texts, list) else texts
    choices = f" One of {', '.join(f'`{each}`' for each in option['choices'])}." if "choices" in option else ""
    fields = "".join(f" `{name}`: {_meaning(field)}" for name, field in option.get("options", {}).items())
    return re.sub(r"\b(?:C|RV)\(([^)]*)\)", r"`\1`", text).replace("|", "\\|") + choices + fields


def main() -> None:
    """Bring the README up to date."""
    README.write_text(written(README.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
