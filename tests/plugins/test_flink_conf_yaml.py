"""``config.yaml`` is edited in places: ours as wanted, all else as it was."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    NAMES,
    SCRIPT,
    Resource,
    wanted_settings,
)

from tests.plugins.yaml_editing import AMOUNT, CLASS, FORMAT, NESTED, PATH, REST, WANTED, merged, removed

FLIP108 = wanted_settings([Resource("gpu", 2, script="/s", args="--a")], protocol="flip108")


@pytest.mark.parametrize(
    "text", ["", "# nothing yet\n", "---\n", "a: 1\n", "a: {b: 1}\n# the end\n\n", "a: |\n  text\n"]
)
def test_missing_settings_are_appended_nested(text: str) -> None:
    assert merged(text) == text + "external-resources: [gpu]\n" + NESTED
    assert removed(merged(text)) == text


def test_what_is_as_wanted_is_not_touched() -> None:
    text = f"{AMOUNT}: 0x2  # two\n{REST}"
    assert merged(text) == text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{AMOUNT}: 1", f"{AMOUNT}: 2"),
        (f"{AMOUNT} :  '1' # one", f"{AMOUNT} :  '2' # one"),
        (f'"{AMOUNT}": "1"', f'"{AMOUNT}": "2"'),
        (f"{AMOUNT}: |  # why\n  1\n", f"{AMOUNT}: 2\n"),
        (f"{AMOUNT}: one\n  two # more", f"{AMOUNT}: 2 # more"),
        (f"{AMOUNT}: [1]", f"{AMOUNT}: 2"),
        (f"{AMOUNT}: !!str 1", f"{AMOUNT}: 2"),
        (f"a: &x 1\n{AMOUNT}: *x # x", f"a: &x 1\n{AMOUNT}: 2 # x"),
        ("external-resource:\n  gpu:\n    amount: 1 # one", "external-resource:\n  gpu:\n    amount: 2 # one"),
        ("external-resource:\n  gpu.amount: 1", "external-resource:\n  gpu.amount: 2"),
        ("external-resource.gpu:\n   amount: 1", "external-resource.gpu:\n   amount: 2"),
        ("external-resource: {gpu: {amount: 1, x: 3}}", "external-resource: {gpu: {amount: 2, x: 3}}"),
        ('external-resource: {"gpu":{"amount":1}}', 'external-resource: {"gpu":{"amount":2}}'),
        (f"? {AMOUNT}\n: 1", f"? {AMOUNT}\n: 2"),
    ],
)
def test_a_value_is_replaced_where_it_stands(before: str, after: str) -> None:
    assert merged(f"a0: 1\n{before}\n{REST}z: 1") == f"a0: 1\n{after}\n{REST}z: 1"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"{AMOUNT}: 1\nexternal-resource:\n  gpu:\n    amount: 2\n", f"{AMOUNT}: 2\n"),
        (
            f"external-resource:\n  gpu:\n    amount: 2\n    x: 1\n{AMOUNT}: 1\n",
            "external-resource:\n  gpu:\n    amount: 2\n    x: 1\n",
        ),
        (
            f"{AMOUNT}: 1\nexternal-resource:\n  # mine\n  gpu.amount: 1\n  gpu:\n    amount: 2\n",
            f"{AMOUNT}: 2\n# mine\n",
        ),
    ],
)
def test_several_spellings_become_the_first(before: str, after: str) -> None:
    assert merged(before + REST) == after + REST


def test_missing_settings_go_into_the_block_that_is_there_in_its_indentation() -> None:
    above = "external-resource:\n    gpu:  # mine\n        amount: 2\n        param: {foo: 1"
    below = "        # end\n    fpga:\n        amount: 1\nz: 1"
    text = f"{above}}}\n{below}"
    assert merged(text) == (
        f"{above}, discovery-script.path: /s}}\n        driver-factory:\n            class: {GPU_DRIVER}\n{below}\n"
        "external-resources: [gpu]\n"
    )


def test_a_name_that_is_taken_is_spelled_flat() -> None:
    text = "external-resource:\n  gpu:\n    amount: 2\n    param: x\n    driver-factory: y\n"
    assert merged(text) == (
        f"{text}    driver-factory.class: {GPU_DRIVER}\n    param.discovery-script.path: /s\n"
        "external-resources: [gpu]\n"
    )


def test_a_file_of_braces_stays_one() -> None:
    assert merged("{a: 1}").startswith("{a: 1, external-resources: [gpu], external-resource.gpu.amount: 2, ")
    assert removed(merged("{a: 1}")) == "{a: 1}"
    assert (
        removed("{external-resource: {gpu: {amount: 1}, fpga: {amount: 1}}}")
        == "{external-resource: {fpga: {amount: 1}}}"
    )
    assert removed("a: 1\nexternal-resource: {x: 'y', gpu.amount: 1 \t}\n") == "a: 1\nexternal-resource: {x: 'y'}\n"
    assert removed(f"{{ {AMOUNT}: 1\t}}") == "{ }"


def test_keys_of_flip_108_stand_flat_and_replace_those_of_releases() -> None:
    assert merged("", FLIP108) == (
        "external-resources: [gpu]\nexternal-resource:\n  gpu:\n    amount: 2\n"
        f"    driver-factory:\n      class: {GPU_DRIVER}\n"
        "external-resource.gpu.param.discovery-script: /s\nexternal-resource.gpu.param.discovery-script.args: --a\n"
    )
    assert "discovery-script.path" not in merged(merged(""), FLIP108)
    assert merged(merged("", FLIP108)) == "external-resources: [gpu]\n" + NESTED


def test_keys_of_another_deployment_go_and_those_of_others_stay() -> None:
    text = merged("", wanted_settings([Resource("gpu", 2, script="/s")], deployment="yarn"))
    assert "    yarn:\n      config-key: yarn.io/gpu\n" in text
    assert merged(text) == "external-resources: [gpu]\n" + NESTED
    assert "foo: 1" in merged("external-resource.gpu.param.foo: 1\n")


def test_the_parameters_of_another_driver_are_its_own() -> None:
    text = "external-resource.fpga.param.discovery-script.path: /theirs\n"
    assert merged(text, wanted_settings([Resource("fpga", 1, driver_class="org.x.Fpga")])).startswith(text)


def test_names_that_yaml_would_read_as_something_else_are_quoted() -> None:
    text = merged("", wanted_settings([Resource("true", 1), Resource("null", 1)]))
    assert "external-resources: [true, 'null']\n" in text
    assert "  'true':\n    amount: 1\n" in text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gpu", "gpu"),
        ("none", "gpu"),
        ("''", "'gpu'"),
        ("a;gpu;b", "a;gpu;b"),
        ("a; b  # two", "a; b;gpu  # two"),
        ("'a;'", "'a;gpu'"),
        ('"a"', '"a;gpu"'),
        ("[]", "[gpu]"),
        ("[a, 'b',]", "[a, 'b', gpu,]"),
        ("'[a, b]'", "'[a, b, gpu]'"),
        ("\n  - a\n  -  b # b", "\n  - a\n  -  b # b\n  -  gpu"),
        ("\n- a", "\n- a\n- gpu"),
        ("[none]", "[none, gpu]"),
    ],
)
def test_our_name_is_added_behind_theirs_in_the_spelling_that_is_there(before: str, after: str) -> None:
    rest = f"{AMOUNT}: 2\n{CLASS}{PATH}"
    assert merged(f"{NAMES}: {before}\n{rest}") == f"{NAMES}: {after}\n{rest}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a; gpu; b", f"{NAMES}: a; b\n"),
        ("gpu", ""),
        ("[gpu]", ""),
        ("[gpu, a]", f"{NAMES}: [a]\n"),
        ("[a, gpu, gpu]", f"{NAMES}: [a]\n"),
        ("'[gpu, a]'", f"{NAMES}: '[a]'\n"),
        ("\n- gpu\n# c\n- a", f"{NAMES}: \n# c\n- a\n"),
        ("\n- gpu", ""),
        ("a", f"{NAMES}: a\n"),
    ],
)
def test_removal_takes_out_our_name_alone(before: str, after: str) -> None:
    assert removed(f"{NAMES}: {before}\nz: 1\n") == f"{after}z: 1\n"


def test_removal_takes_out_ours_and_the_blocks_that_would_be_empty() -> None:
    kept = "a: 1\n# the GPUs\nexternal-resource:\n  # of mine\n  gpu:\n"
    script = "      discovery-script:\n        path: /s\n"
    assert (
        removed(f"{kept}    amount: 2 # two\n    param:\n      foo: 1\n{script}") == f"{kept}    param:\n      foo: 1\n"
    )
    assert removed(f"{kept}    amount: 2 # two\n    param:\n{script}") == "a: 1\n# the GPUs\n# of mine\n"


def test_a_resource_that_is_no_longer_wanted_goes() -> None:
    assert merged(merged("z: 1\n", wanted_settings([Resource("old", 1)])), drop=("old", "gpu")) == merged("z: 1\n")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_encoding_and_line_ends_stay(encoding: str) -> None:
    content = "# Größe\r\na: 1".encode(encoding)
    result = merge(content, FORMAT, WANTED)
    assert result.startswith(content)
    assert result.decode(encoding) == "# Größe\r\na: 1\r\nexternal-resources: [gpu]\r\n" + NESTED.replace("\n", "\r\n")


@pytest.mark.parametrize("nothing", ["", " ~", " &x null"])
def test_nothing_where_another_spelling_follows_is_replaced(nothing: str) -> None:
    text = merged(f"external-resource:\n  gpu:\n    amount:{nothing}\n    x: 1\n{AMOUNT}: 3\n{REST}")
    assert text.count("amount: 2") == 1
    assert removed(text) == "external-resource:\n  gpu:\n    x: 1\n"


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        (f"a: 1\n{NAMES}: gpu,b\n", (2, 1), "one name to Flink"),
        (f"{NAMES}: '[gpu, ~]'\n", (1, 1), "one name to Flink"),
        (f"{NAMES}: '\"a\"b'\n", (1, 1), "quotes that don't match"),
        (f"a: 1\nb: &x {{amount: 1}}\n{NAMES}: [a]\nexternal-resource: {{gpu: *x}}\n", (2, 8), "an anchor ties it"),
        (f"{AMOUNT}: &x 1\nb: *x\n", (1, 1), "an anchor ties it"),
        (f"{NAMES}.x: 1\n{NAMES}: {{y: 1}}\n", (1, 1), "no place"),
        ("external-resource:\n  ? gpu\n  : amount: 1\n    x: 2\n", (0, 0), "without harm to external-"),
    ],
)
def test_what_cannot_be_edited_safely_is_refused(text: str, place: tuple[int, int], says: str) -> None:
    with pytest.raises(FlinkConfError, match=says) as caught:
        merged(text)
    assert (caught.value.line, caught.value.column) == place


def test_a_text_that_goes_leaves_nothing_that_would_be_a_comment() -> None:
    text = "external-resource:\n  gpu:\n    param.discovery-script.args: |\n      # not one\n    amount: 2\n    # one\n"
    assert removed(f"{text}{REST}b: 1\n") == "    # one\nb: 1\n"


def test_comments_that_stay_move_to_the_block_that_stays() -> None:
    kept = "external-resource:\n  note: |\n    text\n"
    assert removed(
        f"{kept}  gpu:\n    # two\n    amount: 2\n    # path\n    param.discovery-script.path: /s\n{REST}"
    ) == (f"{kept}  # two\n  # path\n")


def test_a_removal_that_would_lengthen_a_text_above_is_refused() -> None:
    with pytest.raises(FlinkConfError, match="without harm to a"):
        removed(f"a: |+\n  text\n{NAMES}: gpu\n\nb: 1\n")


def test_an_anchor_with_the_wanted_value_is_left_alone() -> None:
    text = f"b: &x {{amount: 2}}\nexternal-resource:\n  gpu: *x\n{NAMES}: gpu\n"
    assert merged(text).startswith(
        f"b: &x {{amount: 2}}\nexternal-resource:\n  gpu: *x\n  gpu.driver-factory.class: {GPU_DRIVER}\n"
    )


def test_the_script_and_its_name_for_the_resource_are_written_by_default() -> None:
    assert f"        path: {SCRIPT}\n        args: --resource gpu\n" in merged(
        "", wanted_settings([Resource("gpu", 1)])
    )
