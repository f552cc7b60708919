"""Settings are written into ``config.yaml`` together, each at its place."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_document import document
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    NAMES,
    Resource,
    wanted_settings,
)

from tests.plugins.yaml_editing import AMOUNT, FORMAT, NESTED, OF_ONE, merged, removed


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("", "a: |\n  no line end"),
        ("---\n", "a:\n  b: >\n    no line end"),
        ("a: |\n  # text\n", "# of b\nb: |+\n  no line end"),
        ("a: 1\n", "\nb:\n- c\n- |\n  blanks behind the last line end\n  "),
    ],
)
def test_settings_stand_above_a_text_that_only_the_files_end_ends(above: str, below: str) -> None:
    assert merged(above + below) == f"{above}external-resources: [gpu]\n{NESTED}{below}"
    assert removed(merged(above + below)) == above + below


def test_they_do_so_in_the_block_of_the_resource_too() -> None:
    text = f"{NAMES}: gpu\nexternal-resource:\n  gpu:\n    amount: 2\n    note: |\n      no line end"
    above, below = text.split("    note")
    missing = NESTED.partition("amount: 2\n")[2]
    assert merged(text) == f"{above}{missing}    note{below}"
    assert removed(merged(text)) == f"external-resource:\n  gpu:\n    note{below}"


def test_a_merge_reads_a_large_file_but_a_few_times() -> None:
    """As many times as there are kinds of edits, not settings."""
    wanted = wanted_settings([Resource("gpu", 2), Resource("more", 1, config_key="x.org/y")], deployment="yarn")
    text = "".join(f"some.key.number{number}: value {number} # c\n" for number in range(3000)).encode()
    document.cache_clear()
    merged = merge(text, FORMAT, wanted)
    assert document.cache_info().misses <= 5
    assert remove(merged, FORMAT, ["gpu", "more"]) == text
    assert document.cache_info().misses <= 9


def test_settings_go_to_several_places_at_once() -> None:
    wanted = wanted_settings([Resource(name, 1, script="/s") for name in ("gpu", "b", "c")])
    before = "external-resource:\n  gpu: {x: 1, y: {}}\n  b:\n    z: 1\nexternal-resources: [gpu, b, c]"
    assert merged(before, wanted) == (
        "external-resource:\n"
        f"  gpu: {{x: 1, y: {{}}, amount: 1, driver-factory.class: {GPU_DRIVER}, param.discovery-script.path: /s}}\n"
        f"  b:\n    z: 1\n{OF_ONE}  c:\n{OF_ONE}external-resources: [gpu, b, c]"
    )
    in_braces = merged("external-resource: {gpu: {x: 1}}", wanted)
    assert in_braces.startswith("external-resource: {gpu: {x: 1, amount: 1, driver")
    assert removed(in_braces, "gpu", "b", "c") == "external-resource: {gpu: {x: 1}}\n"


def test_a_key_that_is_taken_as_a_whole_is_nested() -> None:
    text = f"{AMOUNT}:\n  x: 1\n"
    assert merged(text) == text + "external-resources: [gpu]\n" + NESTED


def test_several_resources_go_at_once() -> None:
    names = ("gpu", "old", "older")
    text = merged("z: 1\n", wanted_settings([Resource(name, 1, script="/s") for name in names]))
    assert merged(text, drop=("old", "older", "gone")).replace("amount: 2", "amount: 1") == merged(
        "z: 1\n", wanted_settings([Resource("gpu", 1, script="/s")])
    )
    assert removed(text, *names) == "z: 1\n"


@pytest.mark.parametrize(
    ("before", "opening", "end", "after"),
    [
        ("~\n", "\n", "", "\n"),
        ("---\n...\n", "---\n", "...\n", "---\n...\n"),
        ("null\n... # c\n", "\n", "... # c\n", "\n---\n... # c\n"),
        (f"# c\n{NAMES}: gpu\n...\n", "# c\n", "...\n", "# c\n---\n...\n"),
    ],
)
def test_settings_take_the_place_of_a_null_and_stand_before_the_documents_end(
    before: str, opening: str, end: str, after: str
) -> None:
    text = merged(before)
    assert text == f"{opening}{text[len(opening) : text.index('external-resource:')]}{NESTED}{end}"
    assert removed(text) == after


def test_a_removal_that_would_leave_an_alias_of_nothing_is_refused() -> None:
    with pytest.raises(FlinkConfError, match=r"^the file can't be edited without harm to the file .*alias"):
        removed(f"&x {AMOUNT}: 1\ny: *x\n")
