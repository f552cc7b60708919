"""A MANIFEST is taken only in the form in which it is written, so that it can't lead outside of its release."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import (
    Entry,
    ReleaseError,
    fits,
    is_name,
    name_for,
    parse,
    render,
    split_shebang,
    with_interpreter,
)

HASH = "0" * 64


def _line(path: str, mode: str = "0644", digest: str = HASH) -> str:
    return f"{digest}  {mode}  {path}\n"


def test_what_is_written_is_read_again() -> None:
    entries = [Entry(HASH, 0o755, "bin/x"), Entry("f" * 64, 0o644, "a/b-c_d.e+f")]
    assert parse(render(entries)) == sorted(entries, key=lambda item: item.path)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../x",
        "./x",
        ".x",
        "a/.x",
        "a//x",
        "a/",
        "a b",
        "a\tb",
        "ü",
        "a\\b",
        "a\x00b",
        "x" * 101,
        "MANIFEST",
        "BYTECODE",
        "__pycache__/x",
        "a/__pycache__/x.pyc",
    ],
)
def test_a_path_that_no_release_may_hold_is_refused(path: str) -> None:
    with pytest.raises(ReleaseError):
        parse(_line(path))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        _line("x", mode="4755"),
        _line("x", mode="644"),
        _line("x", digest="A" * 64),
        _line("x").rstrip("\n"),
        _line("x").replace("\n", "\r\n"),
        _line("b") + _line("a"),
        _line("a") + _line("a"),
        _line("a") + _line("a/b"),
        _line("a") + "\n",
    ],
)
def test_a_text_that_would_not_be_written_so_is_refused(text: str) -> None:
    with pytest.raises(ReleaseError, match="ship the release again"):
        parse(text)


def test_a_name_stands_for_its_manifest() -> None:
    text = _line("x")
    assert fits(name_for("1.2.0", text), text)
    assert not fits(name_for("1.2.0", text), text + _line("y"))
    assert not fits("../" + name_for("1.2.0", text), text)


@pytest.mark.parametrize("version", ["", "1/2", "..", "1 2", "x", "1\n", "1-2"])
def test_a_version_that_can_not_name_a_folder_is_refused(version: str) -> None:
    with pytest.raises(ReleaseError, match="can't name a folder"):
        name_for(version, "")


@pytest.mark.parametrize(
    "name", [".new-1.0-0123456789ab", "current", "1.0", "1.0-0123456789AB", "1.0-0123456789ab\n", ""]
)
def test_other_folders_are_no_releases(name: str) -> None:
    assert not is_name(name)


def test_a_scripts_first_line_is_set_and_read_back() -> None:
    shipped = b"#!/usr/bin/python3 -IS\nprint()\n"
    set_to = with_interpreter(shipped, "/opt/py/bin/python3.12")
    assert set_to == b"#!/opt/py/bin/python3.12 -IS\nprint()\n"
    assert split_shebang(set_to) == ("/opt/py/bin/python3.12", shipped)
    assert split_shebang(b"#!/bin/sh\n") == ("", b"#!/bin/sh\n")
