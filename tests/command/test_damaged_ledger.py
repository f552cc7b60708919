"""A ledger that can't be trusted, or can't be written: nothing is lost, nothing is handed out."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.executor import TaskExecutor
from tests.support.paths import reachable
from tests.support.script import PATH, SCRIPT, Result, run

FOUR = ("--backend", "simulated:4")
COMMANDS = [("allocate", "1", *FOUR), ("deallocateAll",), ("reclaim",), ("status",)]
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root: mounts, other users")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A good ledger with two GPUs held."""
    path = tmp_path / "ledger"
    assert run("2", *FOUR, "--ledger", str(path)).code == 0
    return path


def assert_refused(result: Result, code: int) -> None:
    assert (result.code, result.out) == (code, ""), result.err
    assert result.err.startswith("flink-gpu-discovery: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err


def contents(good: bytes) -> dict[str, bytes]:
    lines = good.split(b"\n")
    return {
        "empty": b"",
        "binary": bytes(range(256)) * 4,
        "json": b'{"0": 4711}\n',
        "upstream": b"0 4711\n1 4712\n",
        "another version": good.replace(b"ledger 1", b"ledger 99", 1),
        "twice": b"\n".join([lines[0], lines[1], lines[1], b"#end 2", b""]),
        "cut off": good[: len(good) // 2],
        "end cut off": good[:-1],
        "appended to": good + b"2 4711\n",
        "large": good + b"\x00" * (100 * 1024 * 1024),
    }


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize("kind", contents(b"\n"))
def test_a_damaged_ledger_is_refused_and_kept(ledger: Path, command: tuple[str, ...], kind: str) -> None:
    damaged = contents(ledger.read_bytes())[kind]
    ledger.write_bytes(damaged)
    assert_refused(run(*command, "--ledger", str(ledger)), 65)
    assert ledger.read_bytes() == damaged


@pytest.mark.slow
def test_a_ledger_cut_off_at_any_byte_is_refused_by_the_command(ledger: Path) -> None:
    good = ledger.read_bytes()
    for size in range(0, len(good), 7):
        ledger.write_bytes(good[:size])
        assert_refused(run("1", *FOUR, "--resource", "b", "--ledger", str(ledger)), 65)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(("kind", "code"), [("link", 77), ("dangling link", 77), ("folder", 65), ("fifo", 65)])
def test_what_is_no_plain_file_is_not_followed(
    tmp_path: Path, ledger: Path, command: tuple[str, ...], kind: str, code: int
) -> None:
    other = tmp_path / "other"
    if kind == "link":
        other.symlink_to(ledger)
    elif kind == "dangling link":
        other.symlink_to(tmp_path / "nowhere")
    elif kind == "folder":
        other.mkdir()
    else:
        os.mkfifo(other)
    before = ledger.read_bytes()
    assert_refused(run(*command, "--ledger", str(other)), code)
    assert ledger.read_bytes() == before
    assert not (tmp_path / "nowhere").exists()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path, ledger: Path) -> None:
    target = tmp_path / "target"
    Path(f"{ledger}.lock").unlink()
    Path(f"{ledger}.lock").symlink_to(target)
    assert_refused(run("1", *FOUR, "--resource", "b", "--ledger", str(ledger)), 77)
    assert not target.exists()


def test_a_missing_parent_folder_is_named(tmp_path: Path) -> None:
    result = run("1", *FOUR, "--ledger", str(tmp_path / "a" / "b" / "ledger"))
    assert_refused(result, 74)
    assert str(tmp_path / "a") in result.err


def test_a_leftover_of_an_interrupted_call_is_no_obstacle(ledger: Path) -> None:
    leftover = Path(f"{ledger}.new")
    leftover.write_bytes(b"half a led")
    assert run("1", *FOUR, "--resource", "b", "--ledger", str(ledger)).out == "2\n"
    assert not leftover.exists()


def as_nobody(*words: str) -> Result:
    """The command as an unprivileged user."""
    done = subprocess.run(
        [str(SCRIPT), *words],
        user=65534,
        group=65534,
        extra_groups=[],
        capture_output=True,
        text=True,
        env={"PATH": PATH},
        timeout=20,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A folder that everybody may write, as /tmp, reachable for everybody."""
    folder = reachable(tmp_path) / "public"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@ROOT_ONLY
def test_a_ledger_planted_by_another_user_is_refused(public: Path) -> None:
    ledger = public / "ledger"
    assert run("1", *FOUR, "--ledger", str(ledger)).code == 0
    os.chown(ledger, 1234, -1)
    before = ledger.read_bytes()
    result = run("1", *FOUR, "--resource", "b", "--ledger", str(ledger))
    assert_refused(result, 77)
    assert "belongs to uid 1234" in result.err
    assert ledger.read_bytes() == before


@ROOT_ONLY
def test_a_ledger_that_may_not_be_read_says_as_whom(public: Path) -> None:
    ledger = public / "ledger"
    assert run("1", *FOUR, "--ledger", str(ledger)).code == 0
    for command in COMMANDS:
        words = (*command, "--owner-pid", "2") if command[0] == "deallocateAll" else command
        result = as_nobody(*words, "--ledger", str(ledger))
        if command[0] in ("allocate", "deallocateAll"):  # the caller, root, is no owner for nobody
            assert_refused(result, 64)
        else:
            assert_refused(result, 77)
            assert "uid 65534" in result.err


@ROOT_ONLY
def test_full_and_read_only_disks_leave_the_old_ledger(tmp_path: Path) -> None:
    """A file system of 16 KiB: the first GPUs fit, more do not."""
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k,mode=0700", "none", mount], check=True)
    ledger = mount / "ledger"
    try:
        with TaskExecutor() as executor:
            first = executor.call("2", *FOUR, "--ledger", str(ledger))
            assert (first.code, first.out) == (0, "0,1\n")
        before = ledger.read_bytes()
        result = run("200", "--backend", "simulated:300", "--ledger", str(ledger))
        assert_refused(result, 74)
        assert "No space left on device" in result.err
        assert ledger.read_bytes() == before
        subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
        assert_refused(run("1", *FOUR, "--ledger", str(ledger)), 74)
        assert ledger.read_bytes() == before
        assert run("status", "--ledger", str(ledger)).code == 0
    finally:
        subprocess.run(["umount", mount], check=True)
