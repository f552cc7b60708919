"""What the role made besides files is noted until it is undone, beside the files."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.record import Entry, FilingError, Record, parse, render
from ansible_collections.flinkops.gpu.plugins.module_utils.record_made import note

from tests.plugins.filing import SmallHost, run_until_killed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")


@pytest.fixture
def host(tmp_path: Path) -> SmallHost:
    return SmallHost(tmp_path)


def test_a_record_is_read_as_it_was_written() -> None:
    record = Record((Entry("/etc/a", ("file:0", "link:/b"), True),), ("/etc/new",), ("user flink",))
    assert parse(render(record), "/record") == record


def test_what_was_made_is_listed_in_that_order_and_once(host: SmallHost) -> None:
    assert note(host.store, ["user flink", "group flink"], [], check=False).changed
    assert not note(host.store, ["group flink"], [], check=False).changed
    notes = note(host.store, ["hold nvidia-driver-535"], ["group flink"], check=False)
    assert (notes.changed, notes.made) == (True, ["user flink", "hold nvidia-driver-535"])
    assert not note(host.store, [], ["group flink"], check=False).changed


def test_reading_changes_nothing_with_a_record_and_without(host: SmallHost) -> None:
    before = host.tree()
    notes = note(host.store, [], [], check=False)
    assert (notes.changed, notes.made, notes.files) == (False, [], [])
    assert host.tree() == before
    note(host.store, ["user flink"], [], check=False)
    host.run([host.file("a")])
    before = host.tree()
    notes = note(host.store, [], [], check=False)
    assert (notes.changed, notes.made, notes.files) == (False, ["user flink"], [f"{host.etc}/a"])
    assert host.tree() == before


def test_the_record_goes_when_nothing_is_left_in_it(host: SmallHost) -> None:
    before = host.tree()
    note(host.store, ["user flink"], [], check=False)
    note(host.store, [], ["user flink"], check=False)
    assert host.tree() == before
    assert not note(host.store, [], ["user flink"], check=False).changed
    assert host.tree() == before


def test_giving_the_files_back_keeps_the_notes_and_the_other_way_round(host: SmallHost) -> None:
    (host.etc / "a").write_text("theirs\n")
    before = host.tree()
    note(host.store, ["user flink"], [], check=False)
    host.run([host.file("a")])
    assert host.run().made == ["user flink"]
    assert note(host.store, [], [], check=False).made == ["user flink"]
    assert not host.run().changed
    host.run([host.file("a")])
    note(host.store, [], ["user flink"], check=False)
    assert host.record.exists()
    host.run()
    assert host.tree() == before


def test_check_mode_foretells_the_list_and_changes_nothing(host: SmallHost) -> None:
    for made, unmade in (["user flink"], []), ([], ["user flink"]):
        before = host.tree()
        foretold = note(host.store, made, unmade, check=True)
        assert host.tree() == before
        assert note(host.store, made, unmade, check=False) == foretold


def test_a_damaged_record_is_refused_and_kept(host: SmallHost) -> None:
    host.record.parent.mkdir()
    host.record.write_text("{")
    for made in (["user flink"], []):
        with pytest.raises(FilingError, match=r"record\.json is damaged"):
            note(host.store, made, [], check=False)
    assert host.record.read_text() == "{"


def test_a_note_that_is_killed_at_any_point_is_mended_by_the_next(tmp_path: Path) -> None:
    for nth in range(1, 100):
        (tmp_path / str(nth)).mkdir()
        host = SmallHost(tmp_path / str(nth))
        before = host.tree()
        was_killed = run_until_killed(partial(note, host.store, ["user flink"], [], check=False), nth)
        assert note(host.store, ["user flink"], [], check=False).made == ["user flink"]
        run_until_killed(partial(note, host.store, [], ["user flink"], check=False), nth)
        note(host.store, [], ["user flink"], check=False)
        assert host.tree() == before
        if not was_killed:
            assert nth > 5
            return
    pytest.fail("it was never left to end")
