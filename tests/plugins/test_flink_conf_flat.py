"""``flink-conf.yaml`` is edited line by line, as Flink's own parser cuts them."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, read, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    NAMES,
    Resource,
    wanted_settings,
)

FORMAT = "flink-conf"
WANTED = wanted_settings([Resource("gpu", 2, script="/s")])
G = b"external-resource.gpu."
REST = G + f"driver-factory.class: {GPU_DRIVER}\n".encode() + G + b"param.discovery-script.path: /s\n"


def merged(content: bytes, wanted: dict[str, str] | None = None) -> bytes:
    result = merge(content, FORMAT, wanted or WANTED)
    assert merge(result, FORMAT, wanted or WANTED) == result
    return result


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"# gr\xf6\xdfer\n",
        b"a: 1\r",
        b"\xef\xbb\xbfexternal-resource.gpu.amount: 7\n",
        b'"external-resource.gpu.amount": 7\n\n',
    ],
)
def test_missing_settings_are_appended_a_line_each(content: bytes) -> None:
    end = b"\r" if content.endswith(b"\r") else b"\n"
    assert merged(content) == content + (b"external-resources: gpu\n" + G + b"amount: 2\n" + REST).replace(b"\n", end)
    assert remove(merged(content), FORMAT, ["gpu"]) == content


def test_the_last_line_is_ended_first() -> None:
    assert merged(b"a: 1\r\nb: 2").startswith(b"a: 1\r\nb: 2\r\nexternal-resources: gpu\r\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"amount: 1", b"amount: 2"),
        (b"amount : \t 1 \t# one", b"amount : \t 2 \t# one"),
        (b"amount: '1'#x", b"amount: 2#x"),
        (b"amount: 1: 3", b"amount: 2"),
        (b"amount: 1\nx: 1\n" + G + b"amount: 2", b"amount: 2\nx: 1"),
    ],
)
def test_a_value_is_replaced_where_it_first_stands_and_stands_once(before: bytes, after: bytes) -> None:
    around = b"external-resources: gpu\n%s" + G + b"%s\n" + REST + b"k:v"
    assert merged(around % (b"\xff: 1\n", before)) == around % (b"\xff: 1\n", after)


def test_blanks_before_a_key_are_no_part_of_it() -> None:
    content = b"external-resources: gpu\n \t%samount: %d\n" + REST
    assert merged(content % (G, 1)) == content % (G, 2)


def test_nothing_is_touched_where_all_is_as_wanted() -> None:
    content = b"external-resources:  a ; gpu\r" + G + b"amount: 2 #\n" + REST + b"last"
    assert merged(content) == content


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a", b"a;gpu"),
        (b"a;b; # c", b"a;b;gpu # c"),
        (b"none", b"gpu"),
        (b"[]", b"gpu"),
        (b"''", b"gpu"),
        (b"none;a", b"none;a;gpu"),
        (b"none;", b"none;gpu"),
        (b"'a;b'", b"'a;b';gpu"),
        (b"gpu;a", b"gpu;a"),
    ],
)
def test_our_name_is_added_behind_theirs(before: bytes, after: bytes) -> None:
    around = b"external-resources: %s\n" + G + b"amount: 2\n" + REST
    assert merged(around % before) == around % after


def test_removal_takes_out_our_lines_and_name_alone() -> None:
    content = b"external-resources: a;gpu # c\n# mine\n" + G + b"amount: 2 # x\n" + G + b"param.foo: 1\n" + REST
    assert remove(content, FORMAT, ["gpu"]) == b"external-resources: a # c\n# mine\n" + G + b"param.foo: 1\n"


def test_a_resource_called_none_is_not_taken_for_none_at_all_when_it_is_left_alone() -> None:
    assert remove(b"external-resources: none;gpu\n", FORMAT, ["gpu"]) == b"external-resources: none;\n"
    assert read(b"external-resources: none;\n", FORMAT).resources == ["none"]


def test_lines_that_mean_something_else_than_they_seem_to_are_told() -> None:
    content = b"\xef\xbb\xbfa: 1\nk:v\n'b': 2\nc: 1\nc: 2\n: v\n# fine\nexternal-resources: a,b\n"
    reading = read(content, FORMAT)
    assert reading.settings == {"\ufeffa": "1", "'b'": "2", "c": "2", NAMES: "a,b"}
    assert [warning.split(",")[0] for warning in reading.warnings] == [f"line {line}" for line in (1, 2, 3, 5, 6, 8)]


@pytest.mark.parametrize("names", ["a,b", "a b", "[a, b]", "'a'b", "\u00a0gpu"])
def test_names_that_flink_reads_as_one_are_refused_with_their_place(names: str) -> None:
    with pytest.raises(FlinkConfError) as caught:
        merged(f"x: 1\nexternal-resources:  {names}\n".encode())
    assert (caught.value.line, caught.value.column) == (2, 22)


def test_a_value_that_the_file_cannot_hold_is_refused() -> None:
    with pytest.raises(FlinkConfError, match="'#'"):
        merged(b"", {**WANTED, "external-resource.gpu.param.discovery-script.args": "--owner a#b"})
