"""What is told of a TaskManager's unit, from what systemd shows of it."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import unit_survey

UNIT = "taskmanager.service"
# Each sets NoNewPrivileges= before systemd 255, and leaves capabilities to the process since; seen on real hosts.
BY_SECCOMP = {
    "DynamicUser": "yes",
    "LockPersonality": "yes",
    "MemoryDenyWriteExecute": "yes",
    "ProtectClock": "yes",
    "ProtectHostname": "yes",
    "ProtectKernelLogs": "yes",
    "ProtectKernelModules": "yes",
    "ProtectKernelTunables": "yes",
    "RestrictAddressFamilies": "AF_INET AF_UNIX",
    "RestrictNamespaces": "cgroup ipc net mnt pid uts",
    "RestrictRealtime": "yes",
    "RestrictSUIDSGID": "yes",
    "SystemCallArchitectures": "native",
    "SystemCallFilter": "~ptrace",
    "SystemCallLog": "ptrace",
}
PLAIN = {
    "Id": UNIT,
    "Names": UNIT,
    "LoadState": "loaded",
    "User": "flink",
    "Delegate": "no",
    "NoNewPrivileges": "no",
    "PrivateDevices": "no",
    "PrivateUsers": "no",
    "ProtectControlGroups": "no",
    "ProtectSystem": "no",
    "ReadOnlyPaths": "",
    **dict.fromkeys(BY_SECCOMP, "no"),
    "RestrictAddressFamilies": "~",
    "SystemCallArchitectures": "",
    "SystemCallFilter": "~",
    "SystemCallLog": "~",
}


def described(changed: dict[str, str] | None = None, *, isolated: bool = True) -> dict[str, object]:
    return unit_survey.describe(UNIT, {**PLAIN, **(changed or {})}, isolated=isolated, users=["flink"])


def test_a_plain_unit_has_nothing_in_the_way() -> None:
    assert described() == {"found": True, "warnings": [], "sandboxed": False, "hindrances": []}


@pytest.mark.parametrize(
    "name", ["Delegate", "NoNewPrivileges", "PrivateDevices", "PrivateUsers", "ProtectControlGroups"]
)
def test_what_hinders_a_confinement_is_named_and_only_with_isolation(name: str) -> None:
    expected = [f"{UNIT}: {name}=yes keeps it from being confined (docs/security.md)"]
    assert described({name: "yes"})["hindrances"] == expected
    assert described({name: "yes"}, isolated=False)["hindrances"] == []


@pytest.mark.parametrize(("name", "value"), BY_SECCOMP.items())
def test_what_systemd_enforces_by_seccomp_hinders_a_users_confinement(name: str, value: str) -> None:
    expected = [f"{UNIT}: {name}={value} keeps it from being confined (docs/security.md)"]
    assert described({name: value})["hindrances"] == expected
    assert described({name: value}, isolated=False)["hindrances"] == []
    assert described({name: value, "User": ""})["hindrances"] == []


def test_no_address_family_at_all_is_a_filter_and_a_long_one_is_cut_short() -> None:
    expected = [f"{UNIT}: RestrictAddressFamilies= keeps it from being confined (docs/security.md)"]
    assert described({"RestrictAddressFamilies": ""})["hindrances"] == expected
    told = described({"SystemCallFilter": "accept" * 300})["hindrances"]
    assert told == [f"{UNIT}: SystemCallFilter={'accept' * 5}… keeps it from being confined (docs/security.md)"]


def test_what_an_older_systemd_does_not_know_is_not_set() -> None:
    shown = {name: value for name, value in PLAIN.items() if not name.startswith(("SystemCall", "Restrict"))}
    assert unit_survey.describe(UNIT, shown, isolated=True, users=["flink"])["hindrances"] == []


@pytest.mark.parametrize(
    ("unit", "told", "real"),
    [
        ("tm.service", "real.service", "real.service"),
        ("tm@.service", "real@flink-gpu-probe.service", "real@.service"),
        ("tm@one.service", "real@one.service", "real@one.service"),
    ],
)
def test_an_alias_is_refused_with_the_name_of_the_unit(unit: str, told: str, real: str) -> None:
    shown = {**PLAIN, "Id": told, "Names": f"{told} {unit_survey.probe_name(unit)}"}
    assert unit_survey.by_name([shown])[unit_survey.probe_name(unit)] == shown
    assert unit_survey.real_name(unit, shown) == real
    hindrances = unit_survey.describe(unit, shown, isolated=False, users=["flink"])["hindrances"]
    assert hindrances == [f"{unit}: is another name of {real}; set that one in flink_gpu_taskmanager_units"]


def test_a_masked_unit_is_told_from_one_that_is_not_there() -> None:
    told = described({"LoadState": "masked", "User": ""})
    assert (told["warnings"], told["hindrances"]) == (
        [f"{UNIT}: is masked, so systemd can't start it; see 'systemctl status'"],
        [],
    )


def test_root_needs_no_new_privileges() -> None:
    assert described({"User": "", "NoNewPrivileges": "yes"})["hindrances"] == []


def test_a_user_that_the_role_was_not_told_of_is_named() -> None:
    told = described({"User": "mallory"}, isolated=False)["hindrances"]
    assert told == [f"{UNIT}: User=mallory is not among flink_gpu_user and flink_gpu_extra_users (flink)"]


def test_a_unit_that_is_not_there_yet_is_no_hindrance() -> None:
    assert described({"LoadState": "not-found", "User": ""}) == {
        "found": False,
        "warnings": [f"{UNIT}: systemd knows no such unit yet"],
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
