"""A configuration file is read as Flink reads it; tests/flinkconf holds this to the real loaders."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, read, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import NAMES, Resource, wanted_settings


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("", {}),
        ("# c\n\n", {}),
        ("~\n", {}),
        ("{a: 1}", {"a": "1"}),
        ("a: {b.c: 1, b: {c: 2}, d: {}}\n", {"a.b.c": "2"}),
        ("a: &x {k: v}\nb: *x\nc: {<<: *x}\n", {"a.k": "v", "b.k": "v", "c.<<.k": "v"}),
        ("a: 1.50\nb: 1e3\nc: 0x1F\n", {"a": "1.5", "b": "1000.0", "c": "31"}),
        ("a: 0o17\nb: 010\nc: True\nd: -0\n", {"a": "15", "b": "10", "c": "true", "d": "0"}),
        ("a: 1e10\nb: 1e-5\nc: 123456789.5\n", {"a": "1.0E10", "b": "1.0E-5", "c": "1.234567895E8"}),
        ("a: 1e-3\nb: 9e-4\nc: 9999999.0\nd: 1e7\n", {"a": "0.001", "b": "9.0E-4", "c": "9999999.0", "d": "1.0E7"}),
        ("a: .inf\nb: -.inf\nc: .nan\n", {"a": ".inf", "b": "-.inf", "c": ".nan"}),
        ("a: yes\nb: 1_000\nc: 2024-01-01\nd: !!str 1\n", {"a": "yes", "b": "1_000", "c": "2024-01-01", "d": "1"}),
        ("a: |\n  x\nb: 'it''s'\nc: \"\\u0041\"\nd: one\n  two\n", {"a": "x\n", "b": "it's", "c": "A", "d": "one two"}),
        ("a: x\u2028y\nb: 'x\x85y'\n", {"a": "x\u2028y", "b": "x\x85y"}),
        ("a: [x, 'p, q', 1, '1', ~]\n", {"a": "[x, 'p, q', 1, '1', null]"}),
        ("a: 1\t2\t# c\nb: x\n  y\t\n", {"a": "1\t2", "b": "x y"}),
        ("a: [?b, c?d, http://x:80/?q=1#f]\n", {"a": "['?b', 'c?d', 'http://x:80/?q=1#f']"}),
        ("a: &\u00e9:? 1\nb: *\u00e9:?\n", {"a": "1", "b": "1"}),
        ("a:\n  b:\na.b: 1\n", {"a.b": "1"}),
        ("~: 1\na: {null: 2}\n", {"null": "1", "a.null": "2"}),
        ('a: "\\ud83d\\ude00"\nb: \ue000\n', {"a": "\U0001f600", "b": "\ue000"}),
        ("a: ['---', ~x, '\u2028', \"\\0\\x7f\", \u00a0]\n", {"a": '[\'---\', ~x, "\\L", "\\0\\x7f", \u00a0]'}),
        ("a: [{[b]: c}]\n", {"a": "[{? [b] : c}]"}),
        ('a: [[""], {k: \'v: w\'}, "\\n"]\n', {"a": "[[''], {k: 'v: w'}, \"\\n\"]"}),
    ],
)
def test_yaml_is_flattened_and_shown_as_by_flink(text: str, settings: dict[str, str]) -> None:
    assert read(text.encode(), "config-yaml").settings == settings


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("a: 1\na: 2\n", (2, 1), "'a' again"),
        ("\"a\": 1\n'a': 2\n", (2, 1), "'a' again"),
        ("a: [{b: 1, b: 2}]\n", (1, 12), "a key again"),
        ("x: 1\na: # c\n", (2, 3), "'a' has no value"),
        ("a.b: 1\na: {b: ~}\n", (2, 8), "'a.b' has no value"),
        ("a: {b: ~}\n", (1, 8), "'a.b' has no value"),
        ("x:\n  1: a\n", (2, 3), "no text"),
        ("a: {{ x }}\n", (1, 5), "no text"),
        ("- a\n", (1, 1), "no 'key: value'"),
        ("hello\n", (1, 1), "no 'key: value'"),
        ("a: 1\n---\nb: 2\n", (2, 1), "second document"),
        ("a: *x\n", (1, 4), "alias"),
        ("a: &x {b: *x}\n", (1, 11), "alias"),
        ("a: !foo 1\n", (1, 4), "tag"),
        ("a:\t1\n", (1, 3), "tab"),
        ("a: [1,\t2]\n", (1, 7), "tab"),
        ("a: '1'\t# c\n", (1, 7), "tab"),
        ("a: [-]\n", (1, 5), "no YAML"),
        ("a: &x.y 1\n", (1, 6), "anchor"),
        ("a:\n  b: |\nc: 1\n", (3, 1), "block scalar without text"),
        ("a: |\n   \n b\n", (3, 2), "less indentation"),
        ("a: b: c\n", (1, 5), "no YAML"),
        ('a: "b\n', (2, 1), "no YAML"),
        ("a: b\x07\n", (1, 5), "U+0007"),
        ("a: &x {b: 1}\n" + "".join(f"c{n}: *x\n" for n in range(51)), (52, 6), "aliases"),
        ("a: " + "x" * (3 << 20) + "\n", (0, 0), "characters"),
    ],
)
def test_what_flink_refuses_is_refused_where_it_stands(text: str, place: tuple[int, int], says: str) -> None:
    with pytest.raises(FlinkConfError) as caught:
        read(text.encode(), "config-yaml")
    assert (caught.value.line, caught.value.column) == place
    assert says in str(caught.value)


def test_a_byte_that_is_no_utf8_is_refused_where_it_stands() -> None:
    with pytest.raises(FlinkConfError, match=r"line 2, column 5: .*UTF-8"):
        read(b"a: 1\n# Gr\xf6\xdfe\n", "config-yaml")


def test_errors_never_show_values() -> None:
    for text in (
        "s3.secret-key: hunter2\ns3.secret-key: hunter3\n",
        "s3.secret-key: hunter2: x\n",
        "s3.secret-key: 'hunter2\n",
        "s3.secret-key: *hunter2\n",
        "s3.secret-key: &hunter2 {a: *hunter2}\n",
        "s3.secret-key: &hunter2.x y\n",
        "s3.secret-key: !hunter2\n",
        "s3.secret-key: !<hunter2> x\n",
        "s3.secret-key: !hunter!2 x\n",
        "%TAG !hunter! a:b\n%TAG !hunter! a:b\n---\na: 1\n",
        "s3.secret-keys: [{hunter2: a, hunter2: b}]\n",
        "s3.secret-key: &a hunter2\n*a : 1\n*a : 2\n",
    ):
        with pytest.raises(FlinkConfError) as caught:
            read(text.encode(), "config-yaml")
        assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("text", ['a: "\\Q"\n', 'a: "\\xQ"\n', "a: |Q\n", "a: !Q!\n", "a: !%Q x\n", "%Q^\n---\n"])
def test_nor_does_a_letter_of_theirs_show(text: str) -> None:
    with pytest.raises(FlinkConfError, match="no YAML") as caught:
        read(text.encode(), "config-yaml")
    assert "Q" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "".join(" " * level + f"k{level}:\n" for level in range(1500)) + " " * 1500 + "v: 1\n",
        "a: " + "[" * 3000 + "]" * 3000 + "\n",
    ],
    ids=["blocks", "brackets"],
)
def test_what_is_nested_too_deeply_is_refused(text: str) -> None:
    for edit in (
        lambda: read(text.encode(), "config-yaml"),
        lambda: merge(text.encode(), "config-yaml", wanted_settings([Resource("gpu", 1)])),
        lambda: remove(text.encode(), "config-yaml", ["gpu"]),
    ):
        with pytest.raises(FlinkConfError, match="nested too deeply"):
            edit()


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("a;b", ["a", "b"]),
        ("' a; b;'", ["a", "b"]),
        ("[a, b]", ["a", "b"]),
        ("[1, true, 0x10]", ["1", "true", "16"]),
        ("'[a, b]'", ["a", "b"]),
        ("\n- a", ["a"]),
        ("none", []),
        ("[none]", ["none"]),
        ("a;none", ["a", "none"]),
        ("\"'a;b';c\"", ["a;b", "c"]),
        ("a;;b", ["a", "", "b"]),
        ("''", []),
    ],
)
def test_names_of_resources_are_split_as_by_flink(value: str, names: list[str]) -> None:
    assert read(f"{NAMES}: {value}\n".encode(), "config-yaml").resources == names


def test_another_spelling_that_counts_and_names_in_one_are_warned_of() -> None:
    reading = read(b"a.b: 1\na:\n  b: 2\nexternal-resources: a b\n", "config-yaml")
    assert [warning.split(":")[0] for warning in reading.warnings] == ["line 3, column 3", "line 4, column 1"]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(FlinkConfError, match="allowed: flink-conf, config-yaml"):
        read(b"", "yaml")
