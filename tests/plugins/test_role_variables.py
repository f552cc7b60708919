"""The role's variables stand in three places, which say the same."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.support.script import ROOT
from tools.role_readme import README, options, written

ROLE = ROOT / "roles/flink_gpu"
DEFAULTS: dict[str, Any] = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
SPECS = yaml.safe_load((ROLE / "meta/argument_specs.yml").read_text())["argument_specs"]


def test_every_variable_has_a_default_and_a_description() -> None:
    assert DEFAULTS.keys() == options().keys()
    assert all(option["description"] for option in options().values())


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_the_default_that_is_documented_is_the_one_that_counts(name: str) -> None:
    default = DEFAULTS[name]
    if isinstance(default, str) and "{{" in default:
        assert "default" not in options()[name]
    else:
        assert options()[name]["default"] == default


def test_every_entry_point_takes_all_variables() -> None:
    for name, spec in SPECS.items():
        assert spec["options"].keys() >= DEFAULTS.keys(), name
        assert (ROLE / f"tasks/{name}.yml").exists()


def test_the_readme_lists_them_as_they_are() -> None:
    assert README.read_text() == written(README.read_text()), "run: python -m tools.role_readme"


def test_every_variable_is_used() -> None:
    folders = (ROLE / name for name in ("tasks", "templates", "vars"))
    text = "".join(path.read_text() for folder in folders for path in folder.rglob("*") if path.is_file())
    unused = [name for name in DEFAULTS if not re.search(rf"(?<!_){name}\b", text)]
    assert unused == []
