"""Which of its files a Flink reads, and what becomes of it and of those that the role wrote before."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import read
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import ChoiceError, agreed, choose
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_plan import Folder, clearing, merging, written
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

FLAT, YAML, BOTH = ["flink-conf.yaml"], ["config.yaml"], ["config.yaml", "flink-conf.yaml"]
WANTED = wanted_settings([Resource("gpu", 2)])


@pytest.mark.parametrize(
    ("version", "present", "chosen"),
    [
        ("1.18.1", FLAT, "flink-conf"),
        ("1.18.1", BOTH, "flink-conf"),
        ("1.18.1", YAML, "flink-conf"),  # which it would miss
        ("1.19.3", FLAT, "flink-conf"),
        ("1.20", YAML, "config-yaml"),
        ("1.20.5", BOTH, "flink-conf"),
        ("1.20.5", [], "config-yaml"),
        ("2.0.2", BOTH, "config-yaml"),
        ("2.3-SNAPSHOT", FLAT, "config-yaml"),
        ("10.0", BOTH, "config-yaml"),
        ("", FLAT, "flink-conf"),
        ("", YAML, "config-yaml"),
    ],
)
def test_each_version_reads_its_file(version: str, present: list[str], chosen: str) -> None:
    assert choose(present, version) == chosen


@pytest.mark.parametrize(
    ("version", "present", "file_format", "says"),
    [
        ("", BOTH, "auto", "both config.yaml and flink-conf.yaml are there, and Flink's version is unknown"),
        ("", [], "auto", "neither config.yaml nor flink-conf.yaml is there"),
        ("1.2", YAML, "auto", "Flink's version is '1.2'; allowed: from 1.11 on, in quotes"),  # 1.20 without them
        ("two", YAML, "auto", "Flink's version is 'two'"),
        ("1.18.1", FLAT, "config-yaml", "Flink 1.18.1 reads flink-conf.yaml alone"),
        ("2.0.2", FLAT, "flink-conf", "Flink 2.0.2 reads config.yaml alone"),
        ("1.20.5", BOTH, "config-yaml", "flink-conf.yaml is there, which Flink 1.20.5 reads instead"),
    ],
)
def test_what_can_not_be_is_refused(version: str, present: list[str], file_format: str, says: str) -> None:
    with pytest.raises(ChoiceError) as caught:
        choose(present, version, file_format)
    assert says in str(caught.value)


def test_a_format_may_be_told() -> None:
    assert choose(BOTH, "", "config-yaml") == "config-yaml"
    assert choose(YAML, "1.20.5", "config-yaml") == "config-yaml"
    assert choose([], "1.20.5", "flink-conf") == "flink-conf"


def test_a_version_that_is_told_must_be_the_one_that_lies_there() -> None:
    assert [agreed("2.3", "2.3.0"), agreed("", "1.20.5"), agreed("1.20.9", ""), agreed("", "")] == [
        "2.3",
        "1.20.5",
        "1.20.9",
        "",
    ]
    with pytest.raises(ChoiceError, match=r"'2\.0', but Flink 2\.3\.0 lies there"):
        agreed("2.0", "2.3.0")


def test_a_plan_names_what_to_write_down_and_what_to_forget() -> None:
    before = b"external-resources: other;old\nexternal-resource.old.amount: 1\n"
    notes = ["user flink", "flink resource old in /c/config.yaml", "flink resource gpu in /d e/config.yaml"]

    plan = merging(Folder("/c", {"config.yaml": before}, "2.3.0"), "auto", WANTED, notes)

    assert (plan.path, plan.file_format, plan.differs, plan.fault) == ("/c/config.yaml", "config-yaml", True, "")
    assert plan.made == ["flink resource gpu in /c/config.yaml"]
    assert plan.unmade == ["flink resource old in /c/config.yaml"]
    assert read(plan.content, plan.file_format).resources == ["other", "gpu"]
    assert written(notes) == {"/c/config.yaml": ["old"], "/d e/config.yaml": ["gpu"]}

    again = merging(Folder("/c", {"config.yaml": plan.content}, "2.3.0"), "auto", WANTED, plan.made)
    assert (again.differs, again.made, again.unmade) == (False, [], [])

    cleared = clearing("/c/config.yaml", plan.content, ["gpu"])
    assert read(cleared.content, plan.file_format).resources == ["other"]
    assert (cleared.differs, cleared.unmade) == (True, plan.made)


def test_a_file_that_is_gone_is_forgotten() -> None:
    plan = clearing("/c/flink-conf.yaml", None, ["gpu"])
    assert (plan.differs, plan.fault, plan.unmade) == (False, "", ["flink resource gpu in /c/flink-conf.yaml"])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "/c: neither config.yaml nor flink-conf.yaml is there"),
        ({"config.yaml": b"a: 1\na: 2\n"}, "/c/config.yaml: line 2, column 1: 'a' again"),
        ({"config.yaml": b"", "flink-conf.yaml": b""}, "/c: both config.yaml and flink-conf.yaml are there"),
    ],
)
def test_what_can_not_be_merged_is_a_fault(content: dict[str, bytes], says: str) -> None:
    plan = merging(Folder("/c", content, ""), "auto", WANTED, [])
    assert plan.fault.startswith(says)
    assert (plan.differs, plan.made) == (False, [])


def test_a_file_that_flink_reads_is_not_made() -> None:
    plan = merging(Folder("/c", {"config.yaml": b""}, "1.18.1"), "auto", WANTED, [])
    assert plan.fault == "/c/flink-conf.yaml is what Flink reads, and is missing; make it, for none is made here"
