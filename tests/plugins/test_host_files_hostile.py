"""What others than root could turn to their use is refused, or does them no good."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

from tests.plugins.filing import SmallHost

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")


@pytest.fixture
def host(tmp_path: Path) -> SmallHost:
    return SmallHost(tmp_path)


def _link_of_another(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")
    os.chown(folder, 1, 1, follow_symlinks=False)


def _file(folder: Path) -> None:
    folder.rmdir()
    folder.write_text("")


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(lambda folder: folder.chmod(0o777), "has mode 0777, so others than root may write", id="world"),
        pytest.param(lambda folder: folder.chmod(0o775), "has mode 0775, so others than root may write", id="group"),
        pytest.param(lambda folder: os.chown(folder, 1, 0), "belongs to uid 1", id="owner"),
        pytest.param(_link_of_another, "belongs to uid 1", id="link"),
        pytest.param(_file, "is no folder", id="file"),
    ],
)
@pytest.mark.parametrize("place", ["parent", "grandparent", "record's folder"])
def test_a_folder_that_is_not_root_s_alone_is_refused(
    host: SmallHost, spoil: Callable[[Path], None], reason: str, place: str
) -> None:
    (host.etc / "d").mkdir()
    name = "d/a" if place == "parent" else "d/e/a"
    if place == "record's folder":
        host.record = host.etc / "d" / "record.json"
        name = "a"
    spoil(host.etc / "d")
    before = host.tree()
    with pytest.raises(FilingError, match=f"{host.etc}/d, on the way to .*, {reason}"):
        host.run([host.file(name)])
    assert host.tree() == before


def test_a_folder_that_is_spoilt_later_keeps_the_removal_from_acting_there(host: SmallHost) -> None:
    (host.etc / "d").mkdir()
    host.run([host.file("d/a"), host.file("b")])
    _link_of_another(host.etc / "d")
    before = host.tree()
    with pytest.raises(FilingError, match="belongs to uid 1"):
        host.run()
    assert host.tree() == before


def test_a_link_of_root_s_and_a_sticky_folder_are_followed(host: SmallHost) -> None:
    (host.etc / "real").mkdir()
    (host.etc / "real").chmod(0o1777)
    (host.etc / "d").symlink_to("./../etc/real")
    before = host.tree()
    host.run([host.file("d/a", "x")])
    assert (host.etc / "real" / "a").read_text().endswith("x")
    host.run()
    assert host.tree() == before


def test_links_that_lead_in_a_circle_are_refused(host: SmallHost) -> None:
    (host.etc / "d").symlink_to("d")
    with pytest.raises(FilingError, match="more than 40 symbolic links"):
        host.run([host.file("d/a")])


@pytest.mark.parametrize("staged", [".a.flink-gpu~", "../opt/flink-gpu-discovery/.record.json.flink-gpu~"])
def test_a_link_planted_at_the_staged_name_is_not_followed(host: SmallHost, staged: str) -> None:
    victim = host.top / "victim"
    victim.write_text("theirs\n")
    host.run([host.file("b")])
    (host.etc / staged).symlink_to(victim)
    host.run([host.file("a"), host.file("b")])
    assert victim.read_text() == "theirs\n"
    assert not (host.etc / "a").is_symlink()
    assert not os.path.lexists(host.etc / staged)


def test_a_link_at_the_lock_s_name_is_not_followed(host: SmallHost) -> None:
    host.record.parent.mkdir()
    Path(f"{host.record}.lock").symlink_to(host.top / "victim")
    with pytest.raises(OSError, match="symbolic links"):
        host.run([host.file("a")])
    assert not (host.top / "victim").exists()


def test_a_link_at_the_path_is_replaced_and_restored_and_its_target_left_alone(host: SmallHost) -> None:
    victim = host.top / "victim"
    victim.write_text("theirs\n")
    (host.etc / "a").symlink_to(victim)
    before = host.tree()
    host.run([host.file("a")])
    assert not (host.etc / "a").is_symlink()
    host.run()
    assert host.tree() == before


@pytest.mark.parametrize("kind", ["folder", "fifo", "device"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_what_is_neither_file_nor_link_is_refused_before_anything_changes(
    host: SmallHost, kind: str, when: str
) -> None:
    path = host.etc / "a"
    if when == "after":
        host.run([host.file("a"), host.file("b")])
        path.unlink()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        _make_null_device(path)
    before = host.record.read_bytes() if when == "after" else None
    for files in ([host.file("0"), host.file("a")], []) if when == "after" else ([host.file("0"), host.file("a")],):
        with pytest.raises(FilingError, match=f"{path} is .*: move it away, then run again"):
            host.run(files)
    assert not (host.etc / "0").exists()
    assert before == (host.record.read_bytes() if when == "after" else None)


def _make_null_device(path: Path) -> None:
    try:
        os.mknod(path, 0o020666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this machine lets nobody make device nodes")


@pytest.mark.parametrize("spoil", [lambda path: path.chmod(0o666), lambda path: os.chown(path, 1, 1)])
def test_a_record_that_others_may_write_is_not_believed(host: SmallHost, spoil: Callable[[Path], None]) -> None:
    host.run([host.file("a")])
    spoil(host.record)
    with pytest.raises(FilingError, match="find out who changed it"):
        host.run()
    assert (host.etc / "a").exists()
