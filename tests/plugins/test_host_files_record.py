"""The record of what was installed: lost, damaged, locked."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import MARKER
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

from tests.plugins.filing import SmallHost, some_files

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")


@pytest.fixture
def host(tmp_path: Path) -> SmallHost:
    return SmallHost(tmp_path)


def test_removal_on_a_host_without_a_record_changes_nothing(host: SmallHost) -> None:
    (host.etc / "settings.conf").write_text(MARKER)
    before = host.tree()
    outcome = host.run()
    assert (outcome.changed, outcome.actions, host.tree()) == (False, [], before)


def test_after_the_record_was_lost_the_own_files_are_known_by_their_marker(host: SmallHost) -> None:
    before = host.tree()
    host.run(some_files(host))
    for path in host.record.parent.iterdir():
        path.unlink()
    host.record.parent.rmdir()
    outcome = host.run([host.file("settings.conf", "a later version\n"), *some_files(host)[1:]])
    assert not [action for action in outcome.actions if action.startswith("save")]
    host.run()
    left = host.tree()
    assert not {path for path in left if path not in before and not path.startswith("etc/new")}


def test_after_the_record_alone_was_lost_originals_still_come_back(host: SmallHost) -> None:
    theirs = host.etc / "settings.conf"
    theirs.write_text("theirs\n")
    host.run(some_files(host))
    host.record.unlink()
    outcome = host.run()
    kept = host.record.parent / "before" / str(theirs).replace("/", "%2F")
    assert f"leave {kept}" in outcome.actions
    assert not host.run().changed
    host.run(some_files(host))
    host.run()
    assert theirs.read_text() == "theirs\n"


def test_after_the_record_alone_was_lost_a_newer_file_of_theirs_is_kept_beside_the_original(host: SmallHost) -> None:
    theirs = host.etc / "settings.conf"
    theirs.write_text("theirs\n")
    host.run(some_files(host))
    host.record.unlink()
    theirs.write_text("newer\n")
    kept = host.etc / "settings.conf.flink-gpu-removed"
    assert f"keep {theirs}, which was edited, as {kept}" in host.run(some_files(host)).actions
    host.run()
    assert (theirs.read_text(), kept.read_text()) == ("theirs\n", "newer\n")


@pytest.mark.parametrize("check", [False, True])
def test_after_the_record_was_lost_what_is_marked_goes_from_the_known_paths(host: SmallHost, check: bool) -> None:
    theirs, enabled = host.etc / "theirs.conf", host.link("enabled", f"{host.etc}/marked.conf")
    theirs.write_text("theirs\n")
    (host.etc / "elsewhere").symlink_to("/opt/else/current/command")
    (host.etc / "folder.conf").mkdir(mode=0o755)
    (host.etc / "restored.conf").write_text("theirs\n")
    before = host.tree()
    command = host.link("command", f"{host.record.parent}/current/command")
    host.run([*map(host.file, ("marked.conf", "restored.conf")), command, enabled])
    host.record.unlink()
    installed = host.tree()
    known = [f"{host.etc}/*.conf", *(str(host.etc / name) for name in ("command", "enabled", "elsewhere", "none"))]
    outcome = host.run(known=known, check=check)
    lost = [str(host.etc / name) for name in ("command", "enabled", "marked.conf", "restored.conf")]
    assert [action for action in outcome.actions if action.startswith("take")] == [
        f"take {path} for an earlier installation's: no record names it" for path in lost
    ]
    assert outcome.paths == lost
    assert host.tree() == (installed if check else before)
    assert check or not host.run(known=known).changed


def test_after_the_record_was_lost_an_installation_takes_what_it_wants_no_more(host: SmallHost) -> None:
    host.run(some_files(host))
    host.record.unlink()
    kept, *_ = some_files(host)
    host.run([kept], known=[f"{host.etc}/settings.conf", f"{host.etc}/new/*/unit.conf"])
    assert (host.etc / "settings.conf").exists()
    assert not (host.etc / "new/deep/unit.conf").exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param("", "is damaged", id="empty"),
        pytest.param('{"version": 1, "files": [', "is damaged", id="cut off"),
        pytest.param("[]", "is damaged", id="a list"),
        pytest.param('{"version": 2}', "has version 2", id="of a later version"),
        pytest.param('{"version": 1, "files": [{"path": "x"}], "folders": [], "made": []}', "is damaged", id="entry"),
        pytest.param('{"version": 1, "files": [], "folders": "/", "made": []}', "is damaged", id="no list"),
    ],
)
def test_a_damaged_record_is_refused_and_kept(host: SmallHost, content: str, reason: str) -> None:
    host.run(some_files(host))
    host.record.write_text(content)
    before = host.tree()
    for files in (some_files(host), []):
        with pytest.raises(FilingError, match=f"{host.record} {reason}"):
            host.run(files)
    assert host.tree() == before


def test_a_missing_original_is_refused_with_its_mend(host: SmallHost) -> None:
    (host.etc / "settings.conf").write_text("theirs\n")
    host.run(some_files(host))
    next((host.record.parent / "before").iterdir()).unlink()
    before = host.tree()
    with pytest.raises(FilingError, match=r'set "original" of .*/settings.conf to false'):
        host.run()
    assert host.tree() == before
    content = json.loads(host.record.read_text())
    for each in content["files"]:
        each["original"] = False
    host.record.write_text(json.dumps(content))
    host.run()
    assert not (host.etc / "settings.conf").exists()


def test_a_run_waits_for_another_and_at_last_gives_up(host: SmallHost) -> None:
    host.run(some_files(host))
    with subprocess.Popen(["flock", "--no-fork", f"{host.record}.lock", "sleep", "20"]) as other:
        try:
            while not _is_locked(host):
                assert other.poll() is None
            with pytest.raises(FilingError, match="is still locked after"):
                _take_lock(host, seconds=0.2)
        finally:
            other.kill()
    _take_lock(host, seconds=0.2)


def test_a_lock_file_that_a_removal_took_meanwhile_is_made_anew(
    host: SmallHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, flock = Path(f"{host.record}.lock"), fcntl.flock

    def flock_after_removal(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        lock.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock_after_removal)
    with host.store.locked(reading=False):
        assert _is_locked(host)


def test_runs_at_the_same_time_follow_one_another(host: SmallHost) -> None:
    (host.etc / "settings.conf").write_text("theirs\n")
    before = host.tree()
    children = [_in_child(host, some_files(host) if number % 2 else []) for number in range(8)]
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 8
    host.run(some_files(host))
    host.run()
    assert host.tree() == before


def _take_lock(host: SmallHost, *, seconds: float) -> None:
    with host.store.locked(reading=False, seconds=seconds):
        pass


def _in_child(host: SmallHost, files: list[dict[str, str]]) -> int:
    child = os.fork()
    if child == 0:
        try:
            host.run(files)
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    return child


def _is_locked(host: SmallHost) -> bool:
    return subprocess.run(["flock", "-n", f"{host.record}.lock", "true"], check=False, timeout=10).returncode != 0
