"""Root is led nowhere by who owns the folders on the way to Flink's configuration."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_files import read
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_place import inside, real
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

from tests.plugins.flinkfolder import FLINK, OLD, flink_folder

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return flink_folder(tmp_path)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    folder = tmp_path / "private" / "conf"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_bytes(b"secret: 1\n")
    return folder


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that others than root come to."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.parametrize("owner", [0, FLINK])
def test_a_folder_that_is_a_link_in_flink_s_folder_is_not_followed(conf: Path, secret: Path, owner: int) -> None:
    conf.rename(conf.with_name("old"))
    conf.symlink_to(secret)
    os.chown(conf, owner, owner, follow_symlinks=False)
    told = read(str(conf))
    assert told.fault.startswith(f"{conf} {'is' if owner == 0 else 'belongs'}")
    assert f"a link to {secret}, which" in told.fault
    assert f"belongs to uid {FLINK}" in told.fault
    assert (told.found, told.files, told.home, told.version) == (False, {}, "", "")


def test_a_link_on_the_way_is_not_followed_either(conf: Path, secret: Path) -> None:
    (conf.parent / "etc").symlink_to(secret.parent)
    assert f"{conf.parent}/etc is a link" in read(f"{conf.parent}/etc/conf").fault
    assert f"{conf.parent}/etc is a link" in read(f"{conf.parent}/etc/conf/../conf").fault


def test_a_link_of_root_s_that_leads_to_one_of_flink_s_is_not_followed(conf: Path, secret: Path) -> None:
    (secret / "flink").symlink_to(conf.parent / "link")
    (conf.parent / "link").symlink_to(secret)
    assert f"{conf.parent}/link is a link" in read(f"{secret}/flink").fault


def test_a_link_in_a_folder_that_others_may_write_to_is_followed_only_if_that_is_sticky_and_the_link_root_s(
    tmp_path: Path, secret: Path
) -> None:
    common = tmp_path / "common"
    common.mkdir()
    (common / "conf").symlink_to(secret)
    common.chmod(0o777)
    assert "has mode 0777" in read(f"{common}/conf").fault
    common.chmod(0o1777)
    assert read(f"{common}/conf").folder == str(secret)
    os.chown(common / "conf", FLINK, FLINK, follow_symlinks=False)
    assert f"belongs to uid {FLINK}" in read(f"{common}/conf").fault


def test_a_folder_of_flink_s_without_links_is_gone_into(conf: Path) -> None:
    assert read(str(conf)).files["config.yaml"].state.content == OLD


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").symlink_to("config.yaml")
    assert "config.yaml leads through more than 40" in read(str(tmp_path)).fault


def test_two_dots_mean_what_the_kernel_makes_of_them(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "conf").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    path = f"{tmp_path}/link/..//./b/conf/"
    told = subprocess.run(["readlink", "-e", path], capture_output=True, text=True, timeout=10, check=True).stdout
    assert real(path) == told.strip() == f"{tmp_path}/a/b/conf"
    assert real("/..") == "/"


def test_a_relative_path_begins_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert real("conf/../x") == f"{tmp_path}/x"


def test_another_caller_than_root_follows_its_own_links_and_root_s_and_no_others(open_folder: Path) -> None:
    conf = flink_folder(open_folder)
    for name, owner in (("root", 0), ("own", FLINK), ("other", FLINK + 1)):
        (open_folder / name).symlink_to("flink/conf")
        os.chown(open_folder / name, owner, owner, follow_symlinks=False)
    os.chown(open_folder, FLINK, FLINK)
    os.seteuid(FLINK)
    try:
        told = {name: read(f"{open_folder}/{name}") for name in ("root", "own", "other")}
    finally:
        os.seteuid(0)
    assert told["root"].folder == told["own"].folder == str(conf)
    assert f"other belongs to uid {FLINK + 1}" in told["other"].fault


def _fault_for_another(conf: Path) -> str:
    os.seteuid(FLINK + 1)
    try:
        return read(str(conf)).fault
    finally:
        os.seteuid(0)


def test_what_a_caller_may_not_read_is_a_fault_and_not_an_empty_folder(open_folder: Path) -> None:
    conf = flink_folder(open_folder)
    unreadable = _fault_for_another(conf)
    conf.parent.chmod(0o700)
    closed = _fault_for_another(conf)
    assert unreadable.startswith(f"{conf}/config.yaml can't be read (Permission denied)")
    assert closed.startswith(f"{conf} can't be looked at (Permission denied)")


def test_a_folder_exchanged_behind_the_back_is_not_worked_in(conf: Path, secret: Path) -> None:
    cwd = Path.cwd()
    conf.parent.rename(conf.parent.with_name("moved"))
    conf.parent.symlink_to(secret.parent)
    with pytest.raises(FilingError, match="another one by now"), inside(str(conf)):
        pass
    assert Path.cwd() == cwd
