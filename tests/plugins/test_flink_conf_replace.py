"""One of Flink's files is replaced as one and keeps what it had; or it is left, and nothing stays beside it."""

from __future__ import annotations

import errno
import os
import stat
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_replace import replace
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

from tests.plugins.filing import run_until_killed
from tests.plugins.flinkfolder import FLINK, NEW, OLD, about, find, flink_folder, mounted

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
ACL, DEFAULT_ACL = "system.posix_acl_access", "system.posix_acl_default"
LEFT = ".config.yaml.flink-gpu~"


@pytest.fixture
def conf(tmp_path: Path) -> Path:
    return flink_folder(tmp_path)


def acl(user: int) -> bytes:
    """That lets one more user read; see include/uapi/linux/posix_acl.h and posix_acl_xattr.h."""
    nobody = 0xFFFFFFFF
    entries = [(0x01, 6, nobody), (0x02, 4, user), (0x04, 0, nobody), (0x10, 4, nobody), (0x20, 0, nobody)]
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        if error.errno != errno.ENOTSUP:
            raise
        pytest.skip(f"no {name} on the file system of {path}")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def immutable(conf: Path) -> Iterator[Path]:
    if subprocess.run(["chattr", "+i", conf / "config.yaml"], capture_output=True, timeout=10, check=False).returncode:
        pytest.skip(f"no immutable files on the file system of {conf}")
    yield conf
    subprocess.run(["chattr", "-i", conf / "config.yaml"], timeout=10, check=True)


def test_the_content_changes_and_owner_and_mode_stay(conf: Path) -> None:
    cwd = Path.cwd()
    os.utime(conf / "config.yaml", (1, 1))
    assert replace(find(conf), NEW, backup=False) == ""
    assert about(conf / "config.yaml") == (NEW, FLINK, 0o640)
    assert (conf / "config.yaml").stat().st_mtime > 1
    assert names(conf) == ["config.yaml"]
    assert Path.cwd() == cwd


@pytest.mark.parametrize("mode", [0o4755, 0o400, 0o666])
def test_any_mode_stays(conf: Path, mode: int) -> None:
    (conf / "config.yaml").chmod(mode)
    replace(find(conf), NEW, backup=False)
    assert about(conf / "config.yaml") == (NEW, FLINK, mode)


def test_acl_and_extended_attributes_stay_in_both(conf: Path) -> None:
    file = conf / "config.yaml"
    wanted = {"user.note": b"ours", ACL: acl(7009)}
    for name, value in wanted.items():
        set_attribute(file, name, value)
    kept = Path(replace(find(conf), NEW, backup=True))
    for path in (file, kept):
        assert {name: os.getxattr(path, name) for name in os.listxattr(path) if name in wanted} == wanted
    assert about(kept) == (OLD, FLINK, 0o640)


def test_a_folder_s_default_acl_opens_the_file_to_nobody_else(conf: Path) -> None:
    set_attribute(conf, DEFAULT_ACL, acl(7009))
    kept = Path(replace(find(conf), NEW, backup=True))
    for path in (conf / "config.yaml", kept):
        assert ACL not in os.listxattr(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_backup_is_the_old_file_with_its_time(conf: Path) -> None:
    os.utime(conf / "config.yaml", (1, 1))
    kept = Path(replace(find(conf), NEW, backup=True))
    assert about(kept) == (OLD, FLINK, 0o640)
    assert kept.stat().st_mtime == 1
    assert names(conf) == ["config.yaml", kept.name]


def test_another_name_of_the_file_keeps_the_old_content(conf: Path) -> None:
    (conf / "other").hardlink_to(conf / "config.yaml")
    replace(find(conf), NEW, backup=False)
    assert ((conf / "other").read_bytes(), (conf / "config.yaml").read_bytes()) == (OLD, NEW)


def test_a_file_that_changed_meanwhile_is_left_alone(conf: Path) -> None:
    found = find(conf)
    (conf / "config.yaml").write_bytes(b"k: 3\n")
    with pytest.raises(FilingError, match="changed meanwhile"):
        replace(found, NEW, backup=True)
    assert (conf / "config.yaml").read_bytes() == b"k: 3\n"
    assert names(conf) == ["config.yaml"]


def test_a_link_of_root_s_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    folder, shared = tmp_path / "conf", tmp_path / "shared.yaml"
    folder.mkdir()
    shared.write_bytes(OLD)
    (folder / "config.yaml").symlink_to("../shared.yaml")
    replace(find(folder), NEW, backup=False)
    assert shared.read_bytes() == NEW
    assert (folder / "config.yaml").is_symlink()


def test_a_folder_that_was_exchanged_meanwhile_is_not_written_to(conf: Path, tmp_path: Path) -> None:
    found, other = find(conf), tmp_path / "other"
    other.mkdir()
    conf.rename(conf.with_name("moved"))
    conf.symlink_to(other)
    with pytest.raises(FilingError, match="as it was, since it can't be replaced"):
        replace(found, NEW, backup=False)
    assert names(other) == []


@pytest.mark.parametrize("backup", [False, True])
def test_what_the_system_refuses_is_told_by_path_and_nothing_stays(immutable: Path, backup: bool) -> None:
    with pytest.raises(FilingError) as told:
        replace(find(immutable), NEW, backup=backup)
    assert str(told.value).startswith(f"{immutable}/config.yaml is as it was, since")
    assert "(Operation not permitted)" in str(told.value)
    assert about(immutable / "config.yaml") == (OLD, FLINK, 0o640)
    assert names(immutable) == ["config.yaml"]


@pytest.mark.parametrize(
    ("shell", "says"),
    [
        ("mount -t tmpfs -o size=16k none {0} && echo k: 1 >{0}/config.yaml", "No space left on device"),
        ("mount --bind {0}/config.yaml {0}/config.yaml", "Device or resource busy"),
    ],
)
@pytest.mark.parametrize("backup", [False, True])
def test_a_full_disk_or_a_mount_leaves_the_file_and_nothing_beside_it(
    conf: Path,
    shell: str,
    says: str,
    backup: bool,
) -> None:
    shown = mounted(
        shell.format(conf),
        f"""
import pathlib
file = flink_conf_files.find({str(conf)!r}, "config.yaml")
try:
    flink_conf_replace.replace(file, bytes(100000), backup={backup})
except Exception as error:
    print(repr(error))
print(sorted(path.name for path in pathlib.Path({str(conf)!r}).iterdir()))
print(file.state == flink_conf_files.find({str(conf)!r}, "config.yaml").state)
""",
    )
    error, left, same = shown.splitlines()
    assert error.startswith(f'FilingError("{conf}/config.yaml is as it was')
    assert says in error
    assert (left, same) == ("['config.yaml']", "True")


def test_a_killed_run_leaves_the_old_or_the_new_file_and_the_next_one_takes_away_the_rest(conf: Path) -> None:
    nth, left = 1, set()
    while run_until_killed(lambda: replace(find(conf), NEW, backup=True), nth):
        assert about(conf / "config.yaml") in {(OLD, FLINK, 0o640), (NEW, FLINK, 0o640)}
        left |= set(names(conf))
        if (conf / "config.yaml").read_bytes() == OLD:
            replace(find(conf), NEW, backup=False)
        assert LEFT not in names(conf)
        replace(find(conf), OLD, backup=False)
        nth += 1
        assert nth < 60
    assert LEFT in left


def test_a_folder_that_is_not_synced_is_told_and_not_called_unchanged(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync = os.fsync

    def failing(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(FilingError, match=r"is replaced, but .* \(Input/output error\)"):
        replace(find(conf), NEW, backup=False)
    assert (conf / "config.yaml").read_bytes() == NEW


def test_a_name_exchanged_for_a_link_meanwhile_gives_nothing_of_root_s_away(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = tmp_path / "shadow"
    shadow.write_bytes(b"")
    shadow.chmod(0o600)
    (conf / "config.yaml").chmod(0o666)
    os.utime(shadow, (1, 1))
    found, fchown = find(conf), os.fchown

    def raced(descriptor: int, uid: int, gid: int) -> None:
        (conf / LEFT).unlink()
        (conf / LEFT).symlink_to(shadow)
        fchown(descriptor, uid, gid)

    monkeypatch.setattr(os, "fchown", raced)
    replace(found, NEW, backup=True)
    assert about(shadow) == (b"", 0, 0o600)
    assert shadow.stat().st_mtime == 1
