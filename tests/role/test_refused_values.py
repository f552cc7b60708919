"""Among the values that Molecule's scenario ``invalid_input`` plays none is missing: no kind, no choice and no rule."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.role.invalid_values import KINDS, RULES, SUDOERS_WORDS, Case
from tests.support.script import ROOT
from tools.role_readme import options

LOADED = yaml.safe_load((ROOT / "roles/flink_gpu/vars/rules.yml").read_text())
MESSAGES = [rule["message"].partition("; allowed: ")[0] for rule in LOADED["__flink_gpu_rules"]]
SAID_OF_KINDS = [sentence for case in KINDS for sentence in case.refused]
SAID_BY_RULES = [sentence for case in RULES for sentence in case.refused]
# What no sentence is about but in one with others, so that its value may be good.
NEVER_ALONE = {
    "flink_gpu_vendor",
    "flink_gpu_deployment",
    "flink_gpu_extra_resources",
    "flink_gpu_isolation",
    "flink_gpu_restart_taskmanagers",
}


def broken(sentence: str) -> str | None:
    """The message of the rule that says it, which shows values where expressions stand; the most specific one."""
    patterns = {message: ".*".join(re.escape(part) for part in re.split(r"{{.*?}}", message)) for message in MESSAGES}
    fitting = [message for message, pattern in patterns.items() if re.fullmatch(pattern, sentence, re.DOTALL)]
    return max(fitting, key=lambda message: len(re.sub(r"{{.*?}}", "", message)), default=None)


def refusals(name: str, option: dict[str, Any]) -> Iterator[list[str]]:
    """How what the specs tell of a variable is refused, in each case in one of these ways."""
    if "choices" in option:
        yield [f"value of {name} must be one of: {', '.join(option['choices'])}, got: "]
    elif option["type"] in ("bool", "int", "float"):
        yield [f"argument '{name}' is of type str and we were unable to convert to {option['type']}"]
    elif option["type"] == "list":
        yield [f"argument '{name}' is of type dict and we were unable to convert to list", f"{name} is "]
    else:
        yield [f"{name} is "]
    for inner, told in option.get("options", {}).items():
        if told.get("required"):
            yield [f"missing required arguments: {inner} found in {name}"]
        if told["type"] != "str":
            yield [
                f"argument '{inner}' is of type str found in '{name}'. and we were unable to convert to {told['type']}"
            ]


def test_every_rule_is_broken() -> None:
    assert set(MESSAGES) - set(map(broken, SAID_BY_RULES)) == set()


@pytest.mark.parametrize("name", sorted(options()))
def test_every_variable_is_refused_where_it_is_not_what_the_specs_say(name: str) -> None:
    said = [*SAID_OF_KINDS, *SAID_BY_RULES]
    # Of several variables that are no texts, or no lists, one sentence tells.
    begin = r"(?:^|(?<=, ))"
    missing = [
        ways
        for ways in refusals(name, options()[name])
        if not any(re.search(begin + re.escape(way), sentence) for way in ways for sentence in said)
    ]
    assert missing == []


@pytest.mark.parametrize("case", RULES, ids=lambda case: case.name)
def test_every_value_of_a_case_is_bad(case: Case) -> None:
    """Rather than passed over beside others that are."""
    said = " ".join(case.refused)
    assert [name for name in case.values if name not in said and name not in NEVER_ALONE] == []


def test_each_word_of_sudo_is_bad_alone() -> None:
    """Where the scenario has them all at once."""
    assert [word for word in SUDOERS_WORDS if not re.match(LOADED["__flink_gpu_sudoers_pattern"], word)] == []
