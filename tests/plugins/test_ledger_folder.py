"""The folder of the ledgers changes hands, and goes, whatever its user has put there."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.ledger_folder import FolderError, Owner, absent, present

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")

FLINK, OTHER, ROOT = Owner(7001, 7001, 0o770), Owner(7002, 7003, 0o770), Owner(0, 0, 0o755)


def about(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """As coordination leaves it."""
    path = tmp_path / "flink-gpu-discovery"
    present(str(path), FLINK, check=False)
    for name in ("ledger", "ledger.lock"):
        put(path / name)
    return path


@pytest.fixture
def treasure(tmp_path: Path) -> Path:
    """Root's folder with a file, which nothing here is about."""
    path = tmp_path / "treasure"
    path.mkdir(0o700)
    (path / "secret").write_text("mine")
    return path


def put(path: Path, uid: int = 7001) -> None:
    path.write_text("{}")
    os.chown(path, uid, uid)
    path.chmod(0o660)


def remove(folder: Path, *, check: bool = False, claimed: bool = False) -> list[str]:
    claim = str(folder.parent / "tmpfiles.conf")
    actions: list[str] = absent(str(folder), claim, check=check, claimed=claimed)
    return actions


def test_it_is_made_once(tmp_path: Path) -> None:
    path = tmp_path / "made"
    assert present(str(path), FLINK, check=True) == [f"make {path}"]
    assert not path.exists()
    assert present(str(path), FLINK, check=False) == [f"make {path}"]
    assert about(path) == (7001, 7001, 0o770)
    assert present(str(path), FLINK, check=False) == []


def test_a_new_owner_gets_the_ledger_and_its_lock(folder: Path) -> None:
    expected = [f"set owner and mode of {path}" for path in (folder, folder / "ledger", folder / "ledger.lock")]
    assert present(str(folder), OTHER, check=True) == expected
    assert about(folder / "ledger") == (7001, 7001, 0o660)
    assert present(str(folder), OTHER, check=False) == expected
    assert about(folder) == (7002, 7003, 0o770)
    assert {about(folder / name) for name in ("ledger", "ledger.lock")} == {(7002, 7003, 0o660)}


@pytest.mark.parametrize("plant", [os.symlink, os.link], ids=["symbolic-link", "hard-link"])
def test_nobody_is_given_what_the_old_owner_has_linked_to(
    folder: Path, treasure: Path, plant: Callable[[Path, Path], None]
) -> None:
    (folder / "ledger").unlink()
    plant(treasure / "secret", folder / "ledger")
    before = about(treasure / "secret")
    present(str(folder), OTHER, check=False)
    present(str(folder), ROOT, check=False)
    assert about(treasure / "secret") == before
    assert (treasure / "secret").read_text() == "mine"


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_is_in_the_way_of_isolation_goes_and_is_not_followed(folder: Path, treasure: Path, kind: str) -> None:
    roots = folder / "root"
    if kind == "folder":
        roots.mkdir()
        (roots / "deep").symlink_to(treasure)
        os.chown(roots, 7001, 7001)
    elif kind == "file":
        put(roots)
    else:
        roots.symlink_to(treasure)
    told = f"remove {roots}, which was not root's"
    assert present(str(folder), ROOT, check=True)[-1] == told
    assert os.path.lexists(roots)
    assert present(str(folder), ROOT, check=False)[-1] == told
    assert (about(folder), list(folder.iterdir())) == ((0, 0, 0o755), [])
    assert (treasure / "secret").read_text() == "mine"


def test_roots_own_folder_stays_with_isolation(folder: Path) -> None:
    present(str(folder), ROOT, check=False)
    (folder / "root").mkdir()
    (folder / "root/ledger").write_text("{}")
    assert present(str(folder), ROOT, check=False) == []
    assert (folder / "root/ledger").exists()


def test_the_other_modes_ledger_goes(folder: Path) -> None:
    present(str(folder), ROOT, check=False)
    (folder / "root").mkdir()
    (folder / "root/ledger").write_text("{}")
    assert [path.name for path in folder.iterdir()] == ["root"]
    present(str(folder), FLINK, check=False)
    assert list(folder.iterdir()) == []


def test_removal_takes_the_ledgers_and_the_empty_folder(folder: Path) -> None:
    (folder / "root").mkdir()
    (folder / "root/ledger.lock").write_text("")
    expected = [
        f"remove {folder}/root/ledger.lock",
        f"remove {folder}/root",
        f"remove {folder}/ledger",
        f"remove {folder}/ledger.lock",
        f"remove {folder}",
    ]
    assert remove(folder, check=True) == expected
    assert (folder / "root/ledger.lock").exists()
    assert remove(folder) == expected
    assert not folder.exists()
    assert remove(folder) == []


def test_removal_leaves_what_is_not_the_roles_and_says_so(folder: Path, treasure: Path) -> None:
    (folder / "notes").write_text("mine")
    (folder / "root").symlink_to(treasure)
    assert remove(folder)[-1] == f"leave {folder}, since notes, root in it is not the role's"
    assert sorted(path.name for path in folder.iterdir()) == ["notes", "root"]
    assert (treasure / "secret").exists()


@pytest.mark.parametrize("text", ["d /run/x 0770 flink flink\n", "# Managed by Ansible: flinkops.gpu\n"])
def test_a_folder_that_an_operators_file_makes_stays_empty(folder: Path, text: str) -> None:
    (folder.parent / "tmpfiles.conf").write_text(text)
    remove(folder)
    assert folder.exists() == text.startswith("d ")


def test_in_check_mode_such_a_file_may_be_announced(folder: Path) -> None:
    assert f"remove {folder}" not in remove(folder, check=True, claimed=True)


def test_what_is_no_folder_is_refused(tmp_path: Path, treasure: Path) -> None:
    (tmp_path / "link").symlink_to(treasure)
    with pytest.raises(FolderError, match="is no folder: move it away"):
        present(str(tmp_path / "link"), FLINK, check=False)
    assert about(treasure) == (0, 0, 0o700)
