"""The values that are refused, as Molecule's scenario ``invalid_input`` plays them, and what is said of them there."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from tests.support.script import ROOT

_INVENTORY = ROOT / "molecule/invalid_input/inventory/cases.yml"


class Case(NamedTuple):
    """One host's variables of the role, and the sentences that its run ends with."""

    name: str
    values: dict[str, Any]
    refused: list[str]


def _read(group: str) -> list[Case]:
    hosts: dict[str, dict[str, Any]] = yaml.safe_load(_INVENTORY.read_text())["cases"]["children"][group]["hosts"]
    return [
        Case(name, {key: value for key, value in values.items() if key.startswith("flink_gpu_")}, values["refused"])
        for name, values in hosts.items()
    ]


KINDS, RULES, OBSTACLES = (_read(group) for group in ("kinds", "rules", "hosts"))
(_WORDS,) = [case.values for case in RULES if case.name == "invalid-words-of-sudo"]
SUDOERS_WORDS: list[str] = [_WORDS["flink_gpu_user"], *_WORDS["flink_gpu_extra_users"]]
