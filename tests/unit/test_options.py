"""What the command line and the settings file come to together."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from flink_gpu_discovery import arguments, settings
from flink_gpu_discovery.errors import DiscoveryError, SettingsError, UsageError
from flink_gpu_discovery.given import Given
from flink_gpu_discovery.options import SETTINGS, Options, settle

HEAD = "[flink-gpu-discovery]\n"


def options(words: str = "", file: str = "") -> Options:
    given = arguments.parse(["2", *words.split()]).given
    stored = settings.parse(HEAD + file, "/etc/x.conf") if file else Given(SettingsError)
    return settle(given, stored, "/run")


def test_the_defaults_are_the_contracts() -> None:
    default = options()
    assert (default.backend, default.id_kind, default.resource, default.ledger) == (
        "auto",
        "index",
        "gpu",
        "/run/flink-gpu-discovery/ledger",
    )
    assert (default.wait_seconds, default.deadline_seconds, default.owner_pid) == (0, 8, 0)
    assert (default.max_per_owner, default.max_per_uid, default.resources) == (0, 0, ())
    assert [default.coordinate, default.check_dead, default.isolate, default.migrate_upstream] == [False] * 4


@pytest.mark.parametrize(
    "words",
    [
        "--coordinate",
        "--ledger /x",
        "--coordination-file /x",
        "--check-dead",
        "--isolate",
        "--enable-coordination-mode",
    ],
)
def test_what_implies_coordination(words: str) -> None:
    assert options(words).coordinate


def test_upstreams_name_implies_check_dead_and_migration() -> None:
    upstream = options("--enable-coordination-mode")
    assert upstream.check_dead
    assert upstream.migrate_upstream


def test_isolation_prints_ordinals_unless_told_otherwise() -> None:
    assert options("--isolate").id_kind == "ordinal"
    assert options("--isolate --id uuid").id_kind == "uuid"


def test_the_command_line_overrides_the_settings() -> None:
    file = "backend = nvml\nwait = 3\nledger = /file\nid = uuid\ndeadline = 5\nresource = other\n"
    from_file = options(file=file)
    assert (from_file.backend, from_file.wait_seconds, from_file.ledger) == ("nvml", 3, "/file")
    assert (from_file.id_kind, from_file.deadline_seconds, from_file.resource) == ("uuid", 5, "other")
    both = options("--backend simulated:2 --wait 0 --ledger /line --id index --deadline 6 --resource gpu", file)
    assert (both.backend, both.wait_seconds, both.ledger) == ("simulated:2", 0, "/line")
    assert (both.id_kind, both.deadline_seconds, both.resource) == ("index", 6, "gpu")


@pytest.mark.parametrize("file", ["coordinate = yes\n", "ledger = /x\n", "check-dead = TRUE\n", "isolate=on\n"])
def test_the_settings_turn_coordination_on(file: str) -> None:
    assert options(file=file).coordinate


def test_an_option_turns_on_what_the_settings_turned_off() -> None:
    assert not options(file="coordinate = no\n").coordinate
    assert options("--ledger /x", "coordinate = no\n").coordinate


def test_settings_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"/etc/x.conf:3: coordinate: bad value 'no'; give yes, or leave out isolate"
    ):
        options(file="isolate = yes\ncoordinate = no\n")


@pytest.mark.parametrize(
    "words",
    [
        "--wait -1",
        "--wait 1e3",
        "--wait .5",
        "--wait 5.",
        "--wait nan",
        "--wait 3601",
        "--wait ٣",
        "--deadline 0",
        "--deadline 0.0",
        "--deadline inf",
        "--id name",
        "--backend",
        "--backend cuda",
        "--backend simulated",
        "--owner-pid 0",
        "--owner-pid 1",
        "--owner-pid x",
        "--owner-pid 99999999",
        "--owner-pid -5",
        "--resource a/b",
        "--resource a;b",
        "--resource ü",
        f"--resource {'a' * 65}",
        "--ledger relative",
        "--ledger /folder/",
    ],
)
def test_values_that_mean_nothing_are_refused(words: str) -> None:
    with pytest.raises(UsageError, match=words.split(maxsplit=1)[0]):
        options(words)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bad_setting_is_blamed_on_its_file_and_line(name: str) -> None:
    bad = {"backend": "cuda", "id": "name", "ledger": "x", "resource": "/", "wait": "x", "deadline": "x"}
    bad["resources"] = "a,/"
    with pytest.raises(SettingsError, match=f"/etc/x.conf:2: {name}: bad value"):
        options(file=f"{name} = {bad.get(name, 'maybe')}\n")


@pytest.mark.parametrize(
    "file", ["backend = simulated:abc\n", "backend = simulated:5000\n", "id = ordinal\n", "ledger = /a\x00b\n"]
)
def test_settings_that_no_call_could_use_are_blamed_on_the_file(file: str) -> None:
    with pytest.raises(SettingsError, match=r"/etc/x.conf:2: "):
        options(file=file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("wait = 1\n", ":1: a setting before the section"),
        ("[other]\n", r":1: unknown section '\[other\]'"),
        (HEAD + HEAD, ":2: given twice"),
        (HEAD + "frob = 1\n", ":2: unknown setting 'frob'; known are backend"),
        (HEAD + "owner-pid = 5\n", "unknown setting"),
        (HEAD + "wait\n", "wait has no value"),
        (HEAD + "wait =\n", "wait has no value"),
        (HEAD + "wait = 1\nwait = 2\n", ":3: wait is given twice"),
    ],
)
def test_a_settings_file_that_is_not_understood_is_refused(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        settings.parse(text, "/etc/x.conf")


def test_comments_blank_lines_and_a_byte_order_mark_are_no_settings() -> None:
    text = "\ufeff# a\r\n; b\r\n\r\n[flink-gpu-discovery]\r\n  wait =  2 \r\n"
    assert settings.parse(text, "/x").text("wait") == "2"


def test_a_missing_file_matters_only_when_it_was_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert settings.load(missing, required=False).text("wait") is None
    with pytest.raises(SettingsError, match="no such settings file"):
        settings.load(missing, required=True)


@pytest.mark.parametrize("content", [b"\xff\xfe", b"#" * 70000, b"\x00\x01"])
def test_a_file_that_is_no_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "conf"
    path.write_bytes(content)
    with pytest.raises(DiscoveryError) as caught:
        settings.load(str(path), required=True)
    assert caught.value.exit_code == 78


def test_a_pipe_is_no_settings_file_and_the_null_device_an_empty_one(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SettingsError, match="not a regular file"):
        settings.load(str(tmp_path / "pipe"), required=True)
    assert settings.load("/dev/null", required=True).text("wait") is None


def test_a_folder_is_no_settings_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="not a regular file"):
        settings.load(str(tmp_path), required=True)
