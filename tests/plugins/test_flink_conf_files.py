"""What is read of Flink's configuration, and what is told of a place where nothing can be written."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_files import read

from tests.plugins.flinkfolder import OLD, flink_folder, mounted

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return flink_folder(tmp_path)


def test_a_folder_is_read_with_what_is_there_and_what_is_not(conf: Path) -> None:
    told = read(str(conf)).describe()
    content = base64.b64encode(OLD).decode()
    sha256 = hashlib.sha256(OLD).hexdigest()
    assert (told["found"], told["folder"], told["home"], told["fault"]) == (True, str(conf), str(conf.parent), "")
    assert told["files"] == {
        "config.yaml": {"exists": True, "content": content, "sha256": sha256, "path": f"{conf}/config.yaml"},
        "flink-conf.yaml": {"exists": False, "content": "", "sha256": "", "path": f"{conf}/flink-conf.yaml"},
    }


def test_a_folder_that_is_missing_is_no_fault(tmp_path: Path) -> None:
    told = read(f"{tmp_path}/none/conf").describe()
    assert (told["found"], told["fault"], told["folder"]) == (False, "", f"{tmp_path}/none/conf")
    assert "home" in told
    assert not (tmp_path / "none").exists()


def test_the_files_stand_in_the_folder_behind_its_links_while_their_own_links_stay(tmp_path: Path) -> None:
    folder = tmp_path / "flink-2.3.0" / "conf"
    folder.mkdir(parents=True)
    (tmp_path / "shared.yaml").write_bytes(OLD)
    (folder / "config.yaml").symlink_to("../../shared.yaml")
    (tmp_path / "flink").symlink_to("flink-2.3.0")
    told = read(f"{tmp_path}/flink/conf")
    assert (told.folder, told.home, told.fault) == (str(folder), str(folder.parent), "")
    assert told.files["config.yaml"].path == f"{folder}/config.yaml"
    assert told.files["config.yaml"].state.content == OLD


def _file_instead_of_the_folder(conf: Path) -> Path:
    return conf / "config.yaml"


def _below_a_file(conf: Path) -> Path:
    return conf / "config.yaml" / "conf"


def _pipe(conf: Path) -> Path:
    os.mkfifo(conf / "flink-conf.yaml")
    return conf


def _folder_instead_of_a_file(conf: Path) -> Path:
    (conf / "flink-conf.yaml").mkdir()
    return conf


def _link_of_flink_s(conf: Path) -> Path:
    (conf / "flink-conf.yaml").symlink_to("/etc/shadow")
    return conf


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_file_instead_of_the_folder, r"/conf/config.yaml is no folder: name the one that config.yaml or .* lies in"),
        (_below_a_file, r"/conf/config.yaml/conf can't be looked at \(Not a directory\): name a folder"),
        (_pipe, r"/conf/flink-conf.yaml is neither a file nor a link: move it away"),
        (_folder_instead_of_a_file, r"/conf/flink-conf.yaml is a folder: move it away"),
        (_link_of_flink_s, r"/conf/flink-conf.yaml is a link to /etc/shadow, which root doesn't follow"),
    ],
)
def test_what_is_wrong_there_is_told_by_its_path_with_the_mend(conf: Path, spoil: object, says: str) -> None:
    assert callable(spoil)
    told = read(str(spoil(conf))).describe()
    assert re.match(re.escape(str(conf.parent)) + says, str(told["fault"]))
    assert [file["exists"] for file in told["files"].values()] == [False, False]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("mount --bind {0} {0} && mount -o remount,bind,ro {0}", "/config.yaml lies on a read-only file system"),
        ("mount --bind {0}/config.yaml {0}/config.yaml", "/config.yaml is a mount point"),
        ("mount --bind {0} {0}", None),
    ],
)
def test_a_file_that_can_not_be_replaced_is_read_and_the_fault_told(
    tmp_path: Path, shell: str, says: str | None
) -> None:
    (tmp_path / "a b").mkdir()
    conf = flink_folder(tmp_path / "a b")
    python = f"told = flink_conf_files.read({str(conf)!r})\nprint(told.fault)\n"
    shown = mounted(shell.format(f"'{conf}'"), python + "print(told.files['config.yaml'].state.content)")
    fault, content = shown.splitlines()
    assert content == str(OLD)
    assert fault.startswith(str(conf) + says) if says else fault == ""


def test_an_empty_folder_on_a_read_only_file_system_is_told_of_too(conf: Path) -> None:
    (conf / "config.yaml").unlink()
    shell = f"mount --bind {conf} {conf} && mount -o remount,bind,ro {conf}"
    assert "read-only" in mounted(shell, f"print(flink_conf_files.read({str(conf)!r}).fault)")


def test_the_version_is_that_of_the_jar_and_the_plugin_is_seen(conf: Path) -> None:
    assert (read(str(conf)).version, read(str(conf)).has_gpu_plugin) == ("", False)
    for name in ("lib/flink-dist-2.3.0.jar", "plugins/external-resource-gpu/flink-external-resource-gpu-2.3.0.jar"):
        (conf.parent / name).parent.mkdir(parents=True)
        (conf.parent / name).touch()
    assert (read(str(conf)).version, read(str(conf)).has_gpu_plugin) == ("2.3.0", True)


def test_the_version_of_an_old_flink_stands_behind_scala_s(conf: Path, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/flink-dist_2.12-1.14.6.jar").touch()
    assert read(str(conf), str(tmp_path)).version == "1.14.6"
