"""docs/flink-config.md shows the cases that Flink's loaders are held against."""

from __future__ import annotations

from tools.flink_config_table import DOCUMENT, written

from .cases import CASES


def test_the_document_shows_the_cases_as_they_are() -> None:
    assert DOCUMENT.read_text() == written(DOCUMENT.read_text()), "run: python -m tools.flink_config_table"


def test_no_two_cases_share_a_name() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
