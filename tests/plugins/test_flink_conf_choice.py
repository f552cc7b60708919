"""Which of its files a Flink reads."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import ChoiceError, agreed, choose

FLAT, YAML, BOTH = ["flink-conf.yaml"], ["config.yaml"], ["config.yaml", "flink-conf.yaml"]


@pytest.mark.parametrize(
    ("version", "present", "chosen"),
    [
        ("1.11", FLAT, "flink-conf"),
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
        ("1.10.3", FLAT, "auto", "Flink's version is '1.10.3'; allowed: from 1.11 on"),
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
