"""A set of files is installed as one, kept right, and given back."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import MARKER

from tests.plugins.filing import SmallHost, some_files

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")


@pytest.fixture
def host(tmp_path: Path) -> SmallHost:
    return SmallHost(tmp_path)


def test_files_links_and_folders_stand_as_wanted(host: SmallHost) -> None:
    outcome = host.run(some_files(host))
    assert outcome.changed
    assert sorted(outcome.paths) == sorted(each["path"] for each in some_files(host))
    nodes = host.tree()
    assert nodes["etc/settings.conf"].content == f"# {MARKER}\none\n"
    assert (nodes["etc/settings.conf"].mode, nodes["etc/new/deep/unit.conf"].mode) == (0o644, 0o640)
    assert nodes["etc/command"].content == "/opt/x//bin/./command"
    assert (nodes["etc/new"].mode, nodes["etc/new/deep"].mode) == (0o755, 0o755)
    assert {node.owner for node in nodes.values()} == {(0, 0)}
    assert nodes["opt/flink-gpu-discovery/record.json"].mode == 0o600


def test_modes_do_not_depend_on_the_umask(host: SmallHost) -> None:
    umask = os.umask(0o077)
    try:
        host.run(some_files(host))
    finally:
        os.umask(umask)
    nodes = host.tree()
    assert (nodes["etc/settings.conf"].mode, nodes["etc/new"].mode) == (0o644, 0o755)
    assert nodes["opt/flink-gpu-discovery"].mode == 0o755


def test_a_second_run_changes_nothing_in_whatever_order_the_files_are_named(host: SmallHost) -> None:
    host.run(some_files(host))
    before = host.tree()
    outcome = host.run(some_files(host)[::-1])
    assert (outcome.changed, outcome.paths, outcome.actions, outcome.diff) == (False, [], [], [])
    assert host.tree() == before


def _edit(path: Path) -> None:
    path.write_text("edited\n")


def _replace_by_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere")


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(_edit, id="content"),
        pytest.param(lambda path: path.chmod(0o600), id="mode"),
        pytest.param(lambda path: os.chown(path, 1, 0), id="owner"),
        pytest.param(lambda path: os.chown(path, 0, 1), id="group"),
        pytest.param(Path.unlink, id="absence"),
        pytest.param(_replace_by_link, id="kind"),
    ],
)
def test_every_difference_is_mended_and_foretold(host: SmallHost, damage: Callable[[Path], None]) -> None:
    host.run(some_files(host))
    right = host.tree()
    path = host.etc / "settings.conf"
    damage(path)
    damaged = host.tree()
    foretold = host.run(some_files(host), check=True)
    assert host.tree() == damaged
    outcome = host.run(some_files(host))
    assert outcome == foretold
    assert outcome.paths == [str(path)]
    assert outcome.diff[0]["before"] != outcome.diff[0]["after"]
    now = host.tree()
    assert {name: (node.kind, node.mode, node.owner, node.content) for name, node in now.items()} == {
        name: (node.kind, node.mode, node.owner, node.content) for name, node in right.items()
    }


@pytest.mark.parametrize("link", ["a file", "another target", "another owner"])
def test_a_link_is_mended_too(host: SmallHost, link: str) -> None:
    files = [host.link("command", "/right")]
    host.run(files)
    path = host.etc / "command"
    if link == "another owner":
        os.chown(path, 1, 1, follow_symlinks=False)
    else:
        path.unlink()
        path.symlink_to("/wrong") if link == "another target" else path.write_text("a file")
    assert host.run(files).changed
    assert path.readlink() == Path("/right")
    assert path.lstat().st_uid == 0
    assert not host.run(files).changed


def test_what_was_there_before_comes_back_with_content_mode_owner_times_and_attributes(host: SmallHost) -> None:
    theirs = host.etc / "settings.conf"
    theirs.write_text("theirs\n")
    theirs.chmod(0o4750)
    os.chown(theirs, 7, 8)
    theirs.chmod(0o4750)
    os.setxattr(theirs, "user.note", b"kept")
    os.utime(theirs, ns=(1, 2))
    (host.etc / "command").symlink_to("odd//target/.")
    before = host.tree()
    assert f"save what stood at {theirs}" in host.run(some_files(host)).actions
    host.run([host.file("settings.conf", "a later version\n"), *some_files(host)[1:]])
    assert theirs.stat().st_uid == 0
    assert host.run().changed
    assert host.tree() == before
    assert os.getxattr(theirs, "user.note") == b"kept"
    assert not host.run().changed


def test_a_path_that_is_named_no_more_is_removed_or_restored_with_its_folders(host: SmallHost) -> None:
    (host.etc / "settings.conf").write_text("theirs\n")
    host.run(some_files(host))
    outcome = host.run(some_files(host)[2:])
    assert (host.etc / "settings.conf").read_text() == "theirs\n"
    assert not (host.etc / "new").exists()
    assert f"restore {host.etc}/settings.conf" in outcome.actions
    assert f"remove the empty folder {host.etc}/new" in outcome.actions
    assert sorted(path.name for path in (host.record.parent / "before").iterdir()) == []
    assert not host.run(some_files(host)[2:]).changed


def test_a_folder_in_which_the_operator_put_something_stays(host: SmallHost) -> None:
    host.run(some_files(host))
    (host.etc / "new" / "theirs").write_text("")
    host.run(some_files(host)[:1])
    assert sorted(path.name for path in (host.etc / "new").iterdir()) == ["theirs"]
    host.run()
    assert (host.etc / "new" / "theirs").exists()
    assert not host.record.parent.exists()


def test_removal_keeps_what_was_edited_by_another_name_and_says_so(host: SmallHost) -> None:
    path = host.etc / "settings.conf"
    path.write_text("theirs\n")
    host.run(some_files(host))
    path.write_text("edited\n")
    kept = host.etc / "settings.conf.flink-gpu-removed"
    kept.write_text("of an earlier removal\n")
    outcome = host.run()
    assert path.read_text() == "theirs\n"
    assert kept.read_text() == "of an earlier removal\n"
    assert (host.etc / "settings.conf.flink-gpu-removed-2").read_text() == "edited\n"
    assert f"keep {path}, which was edited, as {kept}-2" in outcome.actions


def test_an_edited_file_is_replaced_and_said_to_have_been_edited(host: SmallHost) -> None:
    host.run(some_files(host))
    path = host.etc / "settings.conf"
    path.write_text("edited\n")
    assert host.run(some_files(host)).actions == [f"replace {path}, which was edited"]


def test_a_file_whose_folder_vanished_is_still_restored(host: SmallHost) -> None:
    (host.etc / "sudoers.d").mkdir()
    theirs = host.etc / "sudoers.d" / "flink"
    theirs.write_text("theirs\n")
    host.run([host.file("sudoers.d/flink")])
    theirs.unlink()
    theirs.parent.rmdir()
    host.run()
    assert theirs.read_text() == "theirs\n"


def test_check_mode_foretells_installation_change_and_removal_and_changes_nothing(host: SmallHost) -> None:
    (host.etc / "settings.conf").write_text("theirs\n")
    for files in (some_files(host), some_files(host)[:2], some_files(host)[:2], [], []):
        before = host.tree()
        foretold = host.run(files, check=True)
        assert host.tree() == before
        assert host.run(files) == foretold
        assert (host.tree() != before) == foretold.changed


def test_the_security_context_is_set_before_a_file_lands(host: SmallHost) -> None:
    seen = []

    def label(staged: str, path: str) -> None:
        seen.append((path, Path(staged).parent == Path(path).parent, os.path.lexists(path)))

    host.run(some_files(host)[:1], label=label)
    assert seen == [(f"{host.etc}/settings.conf", True, False)]


def test_when_the_system_refuses_while_staging_no_file_has_landed(host: SmallHost) -> None:
    def full(staged: str, path: str) -> None:
        if path.endswith("command"):
            raise OSError(28, "No space left on device", staged)

    (host.etc / "settings.conf").write_text("theirs\n")
    before = host.tree()
    with pytest.raises(OSError, match="No space left"):
        host.run(some_files(host), label=full)
    assert (host.etc / "settings.conf").read_text() == "theirs\n"
    assert not [path for path in host.etc.rglob("*") if path.is_file() and path.name != "settings.conf"]
    host.run()
    assert host.tree() == before


def test_a_file_is_synced_before_it_lands_and_its_folder_afterwards(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[tuple[str, str]] = []
    fsync, rename = os.fsync, Path.rename

    def noted_fsync(descriptor: int) -> None:
        acts.append(("sync", str(Path(f"/proc/self/fd/{descriptor}").readlink())))
        fsync(descriptor)

    def noted_rename(path: Path, target: str) -> Path:
        acts.append(("land", target))
        return rename(path, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    path = host.etc / "a"
    path.write_text("theirs\n")
    host.run([host.file("a")])
    saved = f"{host.record.parent}/before/{str(path).replace('/', '%2F')}"
    assert [target for act, target in acts if act == "land"] == [saved, str(host.record), str(path)]
    for place, (act, target) in enumerate(acts):
        if act == "land":
            folder, name = os.path.split(target)
            assert ("sync", f"{folder}/.{name}.flink-gpu~") in acts[:place]
            assert ("sync", folder) in acts[place:]


def test_the_diff_shows_contents_and_absence(host: SmallHost) -> None:
    [created] = host.run([host.file("a", "x\n")]).diff
    assert (created["before_header"], created["before"]) == (f"{host.etc}/a (absent)", "")
    assert created["after"] == f"# {MARKER}\nx\n"
    (host.etc / "a").chmod(0o600)
    [mode] = host.run([host.file("a", "x\n")]).diff
    assert mode["before"].startswith("mode 0600, owner 0:0\n")
    assert mode["after"].startswith("mode 0644, owner 0:0\n")
