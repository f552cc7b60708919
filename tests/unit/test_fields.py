"""Tab-separated fields."""

from __future__ import annotations

import os

import pytest

from flink_gpu_discovery import fields

HOSTILE = ["", "-", "%", "a\tb", "a\nb", "\r", "\x00", "ü", os.fsdecode(b"\xff\xfe"), "%2D", " ", "a b", "\u2028"]


@pytest.mark.parametrize("value", HOSTILE)
def test_any_value_comes_back(value: str) -> None:
    line = fields.join((value, "x", value))
    assert fields.split(line) == (value, "x", value)
    assert line.isascii()
    assert line.isprintable() or set(line) - {"\t"} <= set(map(chr, range(0x20, 0x7F)))


@pytest.mark.parametrize("line", ["", "a\t", "\ta", "a\t\tb", "%", "a%4", "%zz", "%+1", "a\x7f", "a\rb", "ü"])
def test_what_join_could_not_have_written_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"printable|escape"):
        fields.split(line)
