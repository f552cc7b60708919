"""What is told of a TaskManager's unit, from what systemd shows of it."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import unit_survey

UNIT = "taskmanager.service"
PLAIN = {
    "Id": UNIT,
    "LoadState": "loaded",
    "User": "flink",
    "Delegate": "no",
    "NoNewPrivileges": "no",
    "PrivateDevices": "no",
    "PrivateUsers": "no",
    "ProtectControlGroups": "no",
    "ProtectSystem": "no",
    "ReadOnlyPaths": "",
}


def described(changed: dict[str, str] | None = None, *, isolated: bool = True) -> dict[str, object]:
    return unit_survey.describe(UNIT, {**PLAIN, **(changed or {})}, isolated=isolated, users=["flink"])


def test_a_plain_unit_has_nothing_in_the_way() -> None:
    assert described() == {"found": True, "user": "flink", "sandboxed": False, "hindrances": []}


@pytest.mark.parametrize(
    "name", ["Delegate", "NoNewPrivileges", "PrivateDevices", "PrivateUsers", "ProtectControlGroups"]
)
def test_what_hinders_a_confinement_is_named_and_only_with_isolation(name: str) -> None:
    expected = [f"{UNIT}: {name}=yes keeps it from being confined (docs/security.md)"]
    assert described({name: "yes"})["hindrances"] == expected
    assert described({name: "yes"}, isolated=False)["hindrances"] == []


def test_root_needs_no_new_privileges() -> None:
    assert described({"User": "", "NoNewPrivileges": "yes"})["hindrances"] == []


def test_a_user_that_the_role_was_not_told_of_is_named() -> None:
    told = described({"User": "mallory"}, isolated=False)["hindrances"]
    assert told == [f"{UNIT}: User=mallory is not among flink_gpu_user and flink_gpu_extra_users (flink)"]


def test_a_unit_that_is_not_there_yet_is_no_hindrance() -> None:
    assert described({"LoadState": "not-found", "User": ""}) == {
        "found": False,
        "user": "root",
        "sandboxed": False,
        "hindrances": [],
    }


@pytest.mark.parametrize(
    ("setting", "value", "sandboxed"),
    [
        ("ProtectSystem", "strict", True),
        ("ProtectSystem", "full", False),
        ("ReadOnlyPaths", "/run", True),
        ("ReadOnlyPaths", "-/", True),
        ("ReadOnlyPaths", "/opt /srv", False),
    ],
)
def test_a_unit_is_sandboxed_where_it_could_not_write_to_run(setting: str, value: str, sandboxed: bool) -> None:
    assert described({setting: value})["sandboxed"] is sandboxed


def test_a_template_is_asked_about_by_an_instance_and_covers_all() -> None:
    assert unit_survey.probe_name("tm@.service") == "tm@flink-gpu-probe.service"
    assert unit_survey.pattern("tm@.service") == "tm@*.service"
    assert unit_survey.covers("tm@.service", "tm@3.service")
    assert not unit_survey.covers("tm@.service", "tm-other@3.service")
    assert not unit_survey.covers("tm@3.service", "tm@33.service")
    assert unit_survey.covers("tm@3.service", "tm@3.service")


def test_what_systemd_shows_of_several_units_is_told_apart() -> None:
    text = "Id=a.service\nUser=flink\n\nId=b.service\nReadOnlyPaths=/a=b /c\n"
    assert unit_survey.parse(text) == [
        {"Id": "a.service", "User": "flink"},
        {"Id": "b.service", "ReadOnlyPaths": "/a=b /c"},
    ]
