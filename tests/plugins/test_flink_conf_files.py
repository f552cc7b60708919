"""Flink's files on a host are replaced as one, and root is led nowhere by who owns their folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import flink_conf_files
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

FLINK = 7001
OLD, NEW = b"# caf\xe9\r\nk: 1\n", b"k: 2\n"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    """A folder of Flink's own user, with a file of its."""
    folder = tmp_path / "flink" / "conf"
    folder.mkdir(parents=True)
    path = folder / "config.yaml"
    path.write_bytes(OLD)
    path.chmod(0o640)
    for each in (folder, path):
        os.chown(each, FLINK, FLINK)
    return folder


def find(conf: Path) -> flink_conf_files.ConfFile:
    return flink_conf_files.find(str(conf), "config.yaml")


def about(path: Path) -> tuple[bytes, int, int]:
    status = path.stat()
    return path.read_bytes(), status.st_uid, status.st_mode & 0o7777


def test_the_content_changes_and_owner_and_mode_stay(conf: Path) -> None:
    cwd = Path.cwd()
    assert flink_conf_files.replace(find(conf), NEW, backup=False) == ""
    assert about(conf / "config.yaml") == (NEW, FLINK, 0o640)
    assert [path.name for path in conf.iterdir()] == ["config.yaml"]
    assert Path.cwd() == cwd


def test_a_backup_is_the_old_file(conf: Path) -> None:
    kept = flink_conf_files.replace(find(conf), NEW, backup=True)
    assert about(Path(kept)) == (OLD, FLINK, 0o640)
    assert Path(kept).parent == conf


def test_a_file_that_changed_meanwhile_is_left_alone(conf: Path) -> None:
    found = find(conf)
    (conf / "config.yaml").write_bytes(b"k: 3\n")
    with pytest.raises(FilingError, match="changed meanwhile"):
        flink_conf_files.replace(found, NEW, backup=False)
    assert (conf / "config.yaml").read_bytes() == b"k: 3\n"


def test_a_link_in_a_folder_of_others_is_refused(conf: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(OLD)
    (conf / "config.yaml").unlink()
    (conf / "config.yaml").symlink_to(secret)
    with pytest.raises(FilingError, match=f"belongs to uid {FLINK}"):
        find(conf)


def test_a_link_of_root_s_is_followed_and_stays(tmp_path: Path) -> None:
    folder, shared = tmp_path / "conf", tmp_path / "shared.yaml"
    folder.mkdir()
    shared.write_bytes(OLD)
    (folder / "config.yaml").symlink_to("../shared.yaml")
    flink_conf_files.replace(find(folder), NEW, backup=False)
    assert shared.read_bytes() == NEW
    assert (folder / "config.yaml").is_symlink()


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").symlink_to("config.yaml")
    with pytest.raises(FilingError, match="more than 40"):
        find(tmp_path)


def test_a_folder_that_was_exchanged_meanwhile_is_not_written_to(conf: Path, tmp_path: Path) -> None:
    found, other = find(conf), tmp_path / "other"
    other.mkdir()
    conf.rename(conf.with_name("moved"))
    conf.symlink_to(other)
    with pytest.raises(OSError, match="directory"):
        flink_conf_files.replace(found, NEW, backup=False)
    assert list(other.iterdir()) == []


def test_the_version_is_that_of_the_jar_and_the_plugin_is_seen(tmp_path: Path) -> None:
    assert (flink_conf_files.version(str(tmp_path)), flink_conf_files.has_gpu_plugin(str(tmp_path))) == ("", False)
    for name in ("lib/flink-dist-2.3.0.jar", "plugins/external-resource-gpu/flink-external-resource-gpu-2.3.0.jar"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    assert (flink_conf_files.version(str(tmp_path)), flink_conf_files.has_gpu_plugin(str(tmp_path))) == ("2.3.0", True)


def test_the_version_of_an_old_flink_stands_behind_scala_s(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/flink-dist_2.12-1.14.6.jar").touch()
    assert flink_conf_files.version(str(tmp_path)) == "1.14.6"
