"""Real releases load configuration files as docs/flink-config.md says."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import attrgetter

import pytest

from .answers import Answer, Case, Loads
from .cases import CASES
from .folders import FOLDERS, Folder
from .loader import Loaded, Loader
from .readers import VERSIONS, Reader

pytestmark = pytest.mark.flink

SKIPPED = re.compile(r"Error (?:while trying to split|after splitting) key and value in configuration file \S+:(\d+): ")


@pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
def test_a_file_is_read_as_documented(case: Case, reader: Reader, loader: Loader) -> None:
    loaded = loader.load_files({reader.file: case.content})

    check(loaded, case.answer(reader.file))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("folder", FOLDERS, ids=attrgetter("name"))
def test_of_a_folder_the_documented_file_is_read(
    folder: Folder, version: str, loader_of: Callable[[str], Loader]
) -> None:
    loaded = loader_of(version).load_files(folder.files)

    check(loaded, folder.answer(version))


def check(loaded: Loaded, expected: Answer) -> None:
    if isinstance(expected, Loads):
        check_loaded(loaded, expected)
        return
    assert expected.reason in (loaded.error or "")
    assert (loaded.settings, loaded.place) == ({}, expected.place)


def check_loaded(loaded: Loaded, expected: Loads) -> None:
    skipped = [found for message in loaded.log if (found := SKIPPED.match(message))]
    said = [message for message in loaded.log if not SKIPPED.match(message)] + [loaded.error or ""]

    assert (loaded.settings, loaded.resources) == (expected.settings, expected.resources)
    assert tuple(int(found[1]) for found in skipped) == expected.skipped
    assert expected.says in " ".join(said)
    assert any(said) == bool(expected.says)
