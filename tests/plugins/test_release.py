"""Installing, switching, rolling back, pruning and removing releases on a host that is a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Wish

from tests.plugins.releasing import PYTHON, SCRIPT, Host, mode_and_owner, small, snapshot

A, B, C = small("1.0"), small("2.0"), small("3.0", more=b"x = 1\n")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def two(host: Host) -> Host:
    """A host that went from A to B."""
    host.install(A)
    host.install(B)
    return host


def test_a_first_run_unpacks_compiles_and_makes_current(host: Host) -> None:
    result = host.install(A)
    assert result["actions"] == [
        f"make folder {host.root}",
        f"make folder {host.root}/releases",
        f"unpack {A.name}",
        f"compile for Python {result['python']['version']} ({PYTHON})",
        f"switch current from none to {A.name}",
    ]
    assert (result["changed"], result["current"], result["release"], result["previous"]) == (True, "", A.name, "")
    assert host.answer() == "1.0\n"
    assert str(host.current.readlink()) == f"releases/{A.name}"
    assert host.names() == {A.name}


def test_what_is_installed_is_roots_and_readable_whatever_the_umask(host: Host) -> None:
    before = os.umask(0)
    try:
        host.install(A)
    finally:
        os.umask(before)
    for path in host.root.rglob("*"):
        executable = path.is_dir() or path.parent.name == "bin"
        assert path.is_symlink() or mode_and_owner(path) == (0o755 if executable else 0o644, 0, 0), path
    tight = os.umask(0o077)
    try:
        assert host.install(A)["actions"] == []
        host.install(B)
    finally:
        os.umask(tight)
    assert host.install(B)["actions"] == []


def test_a_second_run_changes_nothing(host: Host) -> None:
    host.install(A)
    before = snapshot(host.root)
    result = host.install(A, ship=False)
    assert (result["changed"], result["actions"]) == (False, [])
    assert result["diff"]["before"] == result["diff"]["after"]
    assert snapshot(host.root) == before


def test_without_an_archive_it_says_what_is_lacking_and_changes_nothing(host: Host) -> None:
    host.install(A)
    before = snapshot(host.folder)
    host.install(B, ship=False)
    result = host.install(B, ship=False)
    assert result["changed"] is False
    assert result["lacking"] == [SCRIPT, "flink_gpu_discovery/__init__.py", "pynvml.py"]
    assert snapshot(host.root) == {key: value for key, value in snapshot(host.root).items() if B.name not in key}
    assert before.keys() == snapshot(host.folder).keys()


def test_an_upgrade_keeps_the_releases_that_were_current_last(two: Host) -> None:
    two.install(A)  # now B is the older one
    result = two.install(C, keep=2)
    assert result["actions"][-2:] == [f"switch current from {A.name} to {C.name}", f"remove release {B.name}"]
    assert (result["releases"], result["previous"]) == ([C.name, A.name], A.name)
    assert two.names() == {A.name, C.name}
    assert two.answer() == "3.0\n"


def test_more_releases_stay_if_asked_for(two: Host) -> None:
    assert two.install(C, keep=3)["releases"] == [C.name, B.name, A.name]
    assert two.install(C, keep=2)["actions"] == [f"remove release {A.name}"]


def test_what_is_no_release_is_left_alone(two: Host) -> None:
    (two.root / "releases/notes").mkdir()
    (two.root / "record.json").write_text("{}")
    two.install(C)
    assert two.names() == {B.name, C.name, "notes"}
    assert two.install(C)["changed"] is False


def test_fewer_than_two_releases_are_refused(host: Host) -> None:
    with pytest.raises(ReleaseError, match="keep: 1 is too few"):
        host.install(A, keep=1)
    assert not host.root.exists()


def test_leftovers_of_interrupted_runs_go(two: Host) -> None:
    left = two.release(".new-9.9-000000000000")
    left.mkdir()
    (left / "x").write_text("half")
    shutil.copytree(two.release(A.name), two.release(f".old-{A.name}"))
    actions = two.install(B)["actions"]
    assert actions == [f"remove leftover {name}" for name in (".new-9.9-000000000000", f".old-{A.name}")]
    assert two.names() == {A.name, B.name}


def test_rolling_back_goes_to_the_release_that_was_current_before(two: Host) -> None:
    result = two.roll_back()
    assert result["actions"] == [f"switch current from {B.name} to {A.name}"]
    assert (result["release"], result["previous"], result["note"]) == (A.name, "", "")
    assert two.answer() == "1.0\n"


@pytest.mark.parametrize("to", [A.name, ""])
def test_rolling_back_again_changes_nothing_and_says_so(two: Host, to: str) -> None:
    two.install(C, keep=3)
    two.roll_back(to)
    before = snapshot(two.root)
    for check in (True, False):
        result = two.roll_back(check=check)
        assert (result["changed"], result["actions"], result["previous"]) == (False, [], "")
        name = to or B.name
        assert result["note"].startswith(f"{name} stays current, it was rolled back to already; name another release")
        assert result["diff"]["before"] == result["diff"]["after"]
    assert snapshot(two.root) == before


def test_rolling_back_mends_the_release_that_stays(two: Host) -> None:
    two.roll_back()
    (two.release(A.name) / SCRIPT).chmod(0o600)
    assert two.roll_back()["actions"] == [f"mend {A.name}: {SCRIPT} (mode 0600 instead of 0755)"]
    assert two.answer() == "1.0\n"


@pytest.mark.parametrize("newest", [A, B, C])
def test_after_an_installation_rolling_back_leads_to_the_one_before_again(two: Host, newest: Any) -> None:
    two.roll_back()
    words = f"switch current from {A.name} to {newest.name}" if newest is not A else f"note that {A.name} was installed"
    assert two.install(newest, keep=3)["actions"][-1] == words
    assert two.install(newest, keep=3)["changed"] is False
    assert two.roll_back()["release"] == (A.name if newest is not A else B.name)


def test_rolling_back_to_a_named_release_is_done_once(two: Host) -> None:
    assert two.roll_back(A.name)["changed"] is True
    assert two.roll_back(A.name)["changed"] is False
    assert two.roll_back(B.name)["actions"] == [f"switch current from {A.name} to {B.name}"]


def test_rolling_back_to_the_release_that_is_current_keeps_it(two: Host) -> None:
    assert two.roll_back(B.name)["actions"] == [f"note that {B.name} was rolled back to"]
    assert two.roll_back()["release"] == B.name


def test_rolling_back_never_leads_to_a_release_that_was_never_current(two: Host) -> None:
    two.install(C, keep=3)
    os.utime(two.release(B.name) / "MANIFEST", ns=(0, 0))  # as an interrupted upgrade leaves it
    assert two.roll_back()["release"] == A.name


def test_rolling_back_is_refused_where_there_is_nothing_to_go_to(host: Host) -> None:
    with pytest.raises(ReleaseError, match=r"no release to roll back to .*there are: none; current: none"):
        host.roll_back()
    host.install(A)
    with pytest.raises(ReleaseError, match=f"no release to roll back to .*there are: {A.name}; current: {A.name}"):
        host.roll_back()
    with pytest.raises(ReleaseError, match=f"to: '../x' is not installed .*there are: {A.name}"):
        host.roll_back("../x")


def test_rolling_back_to_a_damaged_release_is_refused(two: Host) -> None:
    (two.release(A.name) / "pynvml.py").write_text("edited")
    with pytest.raises(ReleaseError, match=r"is damaged \(pynvml.py \(other content\)\)"):
        two.roll_back()
    (two.release(A.name) / "MANIFEST").write_text("edited")
    with pytest.raises(ReleaseError, match="doesn't fit the folder's name"):
        two.roll_back()
    assert two.answer() == "2.0\n"


def test_rolling_back_mends_modes_and_bytecode(two: Host) -> None:
    folder = two.release(A.name)
    (folder / SCRIPT).chmod(0o600)
    shutil.rmtree(folder / "__pycache__")
    actions = two.roll_back()["actions"]
    assert [words.split(" ")[0] for words in actions] == ["mend", "compile", "switch"]
    assert two.roll_back(A.name)["changed"] is False


def test_a_clock_set_back_does_not_change_the_order(two: Host) -> None:
    future = 4_000_000_000_000_000_000
    os.utime(two.release(B.name) / "MANIFEST", ns=(future, future))
    assert two.install(A)["releases"] == [A.name, B.name]
    assert two.install(A)["changed"] is False
    assert two.install(C)["releases"] == [C.name, A.name]


def test_removal_takes_all_of_it_and_is_done_once(two: Host) -> None:
    result = two.remove()
    assert result["actions"] == [f"remove {two.root}/current", f"remove {two.root}/releases", f"remove {two.root}"]
    assert (result["current"], result["releases"]) == (B.name, [])
    assert not two.root.exists()
    assert two.remove()["changed"] is False


def test_removal_leaves_what_belongs_to_others(two: Host) -> None:
    (two.root / "record.json").write_text("{}")
    two.remove()
    assert [path.name for path in two.root.iterdir()] == ["record.json"]
    assert two.remove()["changed"] is False


def test_removal_does_not_follow_links(two: Host, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (two.root / "releases").rename(elsewhere)
    (two.root / "releases").symlink_to(elsewhere)
    two.remove()
    assert (elsewhere / B.name).is_dir()
    two.root.symlink_to(elsewhere)
    with pytest.raises(ReleaseError, match="is a symbolic link"):
        two.remove()
    assert (elsewhere / B.name).is_dir()


def test_check_mode_says_what_a_run_does_and_changes_nothing(two: Host) -> None:
    (two.root / "record.json").write_text("{}")
    acts: tuple[Callable[[bool], dict[str, Any]], ...] = (
        lambda check: two.install(A, check=check, ship=not check),
        lambda check: two.roll_back(check=check),
        lambda check: two.install(C, check=check, ship=not check),
        lambda check: two.remove(check=check),
    )
    for act in acts:
        before = snapshot(two.root)
        said = act(True)
        assert snapshot(two.root) == before
        assert said == act(False)
        assert said["changed"]


@pytest.mark.parametrize("root", ["", "opt", "/", "/opt/../x", "/opt/x/", "/opt//x"])
def test_a_root_that_is_no_folder_of_its_own_is_refused(root: str) -> None:
    from ansible_collections.flinkops.gpu.plugins.module_utils.release import run

    with pytest.raises(ReleaseError, match="is not the absolute path of a folder of its own"):
        run(root, Wish("absent"), check=True)


def test_a_root_below_nothing_is_refused(tmp_path: Path) -> None:
    host = Host(tmp_path / "missing")
    with pytest.raises(ReleaseError, match="doesn't exist: make it, or choose another root"):
        host.roll_back()
    assert host.remove()["changed"] is False
