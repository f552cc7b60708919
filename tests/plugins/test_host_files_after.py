"""Whoever has to know of changed files is told, also if a run was interrupted before it came to that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files import arrange
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_after import after_from
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import wanted_from
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

from tests.plugins.filing import SmallHost, run_until_killed


class ToldHost(SmallHost):
    """``units`` under ``etc``, of whose changes a log is told."""

    def __init__(self, top: Path) -> None:
        super().__init__(top)
        self.log = top / "log"
        script = top / "tell"
        script.write_text(f"#!/bin/sh\necho told >>{self.log}\n[ ! -e {top / 'broken'} ]\n")
        script.chmod(0o755)
        self.after = [{"below": str(self.etc / "units"), "command": str(script)}]

    def unit(self, content: str = "one\n") -> dict[str, str]:
        return self.file("units/a.conf", content)

    def arrange(self, *files: dict[str, str], check: bool = False) -> Any:
        return arrange(
            self.store,
            wanted_from(files),
            folder=str(self.validation),
            check=check,
            label=lambda staged, path: None,
            after=after_from(self.after),
        )

    @property
    def times(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0


@pytest.fixture
def host(tmp_path: Path) -> ToldHost:
    return ToldHost(tmp_path)


def test_a_change_below_the_folder_is_told_once_and_one_elsewhere_is_not(host: ToldHost) -> None:
    outcome = host.arrange(host.unit(), host.file("units/b.conf"), host.file("other"))
    assert f"run {host.after[0]['command']}" in outcome.actions
    assert host.times == 1
    assert not host.arrange(host.unit(), host.file("units/b.conf"), host.file("other")).changed
    host.arrange(host.unit(), host.file("units/b.conf"), host.file("other", "changed\n"))
    assert host.times == 1


def test_taking_a_file_away_is_told_and_nothing_is_left(host: ToldHost) -> None:
    before = host.tree()
    host.arrange(host.unit())
    host.arrange()
    assert host.times == 2
    assert host.tree() == before


def test_check_mode_says_it_and_tells_nobody(host: ToldHost) -> None:
    assert f"run {host.after[0]['command']}" in host.arrange(host.unit(), check=True).actions
    assert host.times == 0


def test_what_could_not_be_told_stays_due_until_it_could(host: ToldHost) -> None:
    (host.top.parent / "broken").touch()
    with pytest.raises(FilingError, match="failed"):
        host.arrange(host.unit())
    assert json.loads(host.record.read_text())["due"] == [host.after[0]["command"]]
    (host.top.parent / "broken").unlink()
    assert host.arrange(host.unit(), check=True).changed
    assert host.arrange(host.unit()).changed
    assert host.times == 2
    assert not host.arrange(host.unit()).changed


@pytest.mark.parametrize("ends", ["present", "absent"])
def test_a_run_that_is_killed_anywhere_is_made_up_for(tmp_path: Path, ends: str) -> None:
    nth, lived = 1, True
    while lived:
        folder = tmp_path / str(nth)
        folder.mkdir()
        host = ToldHost(folder)
        empty = host.tree()
        lived = run_until_killed(lambda: host.arrange(host.unit()), nth)  # noqa: B023
        was_placed = (host.etc / "units/a.conf").exists()
        host.arrange(*([host.unit()] if ends == "present" else []))
        assert host.times >= (1 if was_placed or ends == "present" else 0)
        if ends == "absent":
            assert host.tree() == empty
        nth += 1
    assert nth > 10


@pytest.mark.parametrize("wrong", [{"below": "etc", "command": "true"}, {"below": "/etc", "command": " "}])
def test_bad_instructions_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(FilingError, match="absolute path, and a command"):
        after_from([wrong])
