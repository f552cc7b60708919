"""Where the ledger lies: attacks in folders that everybody may write, tmp cleaners, odd file systems."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink_gpu_discovery import mounts
from tests.support.executor import TaskExecutor
from tests.support.paths import reachable
from tests.support.script import PATH, SCRIPT, Result, run

FOUR = ("--backend", "simulated:4")
NOBODY = 65534
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root: other users, sysctl")


@pytest.fixture
def public(tmp_path: Path) -> Path:
    """A sticky folder that everybody may write, as /tmp."""
    folder = reachable(tmp_path) / "public"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def as_nobody(*words: str) -> Result:
    """The command called by a shell of an unprivileged user, which is the owner."""
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@"; exit $?', "sh", str(SCRIPT), *words],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        env={"PATH": PATH},
        timeout=20,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def assert_refused(result: Result, code: int, *parts: str) -> None:
    assert (result.code, result.out) == (code, ""), result.err
    assert result.err.count("\n") == 1
    for part in parts:
        assert part in result.err


@ROOT_ONLY
def test_a_private_ledger_works_in_a_public_folder(public: Path) -> None:
    assert as_nobody("1", *FOUR, "--ledger", str(public / "ledger")).out == "0\n"
    assert {path.stat().st_uid for path in public.iterdir()} == {NOBODY}


@ROOT_ONLY
@pytest.mark.parametrize("name", ["ledger", "ledger.lock", "ledger.new"])
def test_symbolic_links_planted_in_a_public_folder_harm_nothing(public: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    link = public / name
    link.symlink_to(victim)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    result = run("1", *FOUR, "--ledger", str(public / "ledger"))
    if name == "ledger.new":
        assert (result.code, result.out) == (0, "0\n")  # it is only ever removed
    else:
        assert_refused(result, 77)
    assert victim.read_text() == "precious\n"


@ROOT_ONLY
@pytest.mark.parametrize("name", ["ledger", "ledger.lock", "ledger.new"])
def test_hard_links_planted_in_a_public_folder_harm_nothing(public: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious\n")
    os.link(victim, public / name)
    result = run("1", *FOUR, "--ledger", str(public / "ledger"))
    if name == "ledger.new":
        assert (result.code, result.out) == (0, "0\n")
    else:
        assert_refused(result, 77, "2 names")
    assert victim.read_text() == "precious\n"
    assert victim.stat().st_mode & 0o777 != 0o660


@ROOT_ONLY
@pytest.mark.parametrize("name", ["ledger", "ledger.lock"])
def test_files_planted_in_a_public_folder_are_not_trusted(public: Path, name: str) -> None:
    planted = public / name
    planted.write_bytes(b"")
    os.chown(planted, 1234, 1234)
    planted.chmod(0o666)
    assert_refused(run("1", *FOUR, "--ledger", str(public / "ledger")), 77, "belongs to uid 1234")


@pytest.fixture
def protected_regular() -> Iterator[None]:
    """The kernel's own protection of sticky folders, which refuses O_CREAT even to root."""
    setting = Path("/proc/sys/fs/protected_regular")
    before = setting.read_text()
    try:
        setting.write_text("1")
    except OSError as error:
        pytest.skip(f"fs.protected_regular can't be set here: {error}")
    yield
    setting.write_text(before)


@ROOT_ONLY
def test_protected_regular_files_are_no_obstacle(public: Path, protected_regular: None) -> None:
    ledger = public / "ledger"
    assert run("1", *FOUR, "--ledger", str(ledger)).out == "0\n"
    os.chown(public, NOBODY, NOBODY)  # root's own files in a sticky folder of somebody else
    assert run("1", *FOUR, "--ledger", str(ledger), "--resource", "b").out == "1\n"
    lock = public / "ledger.lock"
    os.chown(lock, 1234, -1)
    assert_refused(run("1", *FOUR, "--ledger", str(ledger), "--resource", "c"), 77, "belongs to uid 1234")


@ROOT_ONLY
def test_a_folder_that_may_not_be_written_says_so(tmp_path: Path) -> None:
    reachable(tmp_path)
    assert_refused(as_nobody("1", *FOUR, "--ledger", str(tmp_path / "ledger")), 77, "uid 65534", "folder")
    assert_refused(as_nobody("1", *FOUR, "--ledger", str(tmp_path / "new" / "ledger")), 77, "cannot create")


def test_a_lock_removed_while_it_is_waited_for_does_not_let_two_in(tmp_path: Path) -> None:
    """A tmp cleaner removes the lock file; the waiter must not go on with the one that is no longer there."""
    ledger, lock = tmp_path / "ledger", tmp_path / "ledger.lock"
    with TaskExecutor() as first, TaskExecutor() as second:
        assert first.call("1", *FOUR, "--ledger", str(ledger)).code == 0
        with subprocess.Popen(["flock", "--no-fork", str(lock), "sleep", "30"]) as keeper:
            _await_lock(lock)
            second.start("1", *FOUR, "--ledger", str(ledger))
            time.sleep(0.3)  # it waits on the file that goes now
            lock.unlink()
            with subprocess.Popen(["flock", "--no-fork", str(lock), "sleep", "30"]) as new_keeper:
                _await_lock(lock)
                keeper.kill()
                time.sleep(0.5)
                assert ledger.read_bytes().endswith(b"#end 1\n")  # still waiting, now on the new file
                new_keeper.kill()
        assert second.finish().out == "1\n"


def _await_lock(lock: Path) -> None:
    for _ in range(500):
        if subprocess.run(["flock", "-n", lock, "true"], check=False).returncode != 0:
            return
        time.sleep(0.01)
    raise AssertionError("the lock was never taken")


def test_a_lock_replaced_all_the_time_ends_at_the_deadline_at_the_latest(tmp_path: Path) -> None:
    ledger, lock = tmp_path / "ledger", tmp_path / "ledger.lock"
    body = f"while :; do rm -f {lock}; done"
    with subprocess.Popen(["/bin/sh", "-c", body]) as cleaner:
        try:
            for _ in range(10):
                result = run("1", *FOUR, "--ledger", str(ledger), "--deadline", "3")
                assert result.code in (0, 74, 75), result.err
                assert (result.out == "0\n") == (result.code == 0)
        finally:
            cleaner.kill()


def test_a_network_file_system_is_told(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    device = tmp_path.stat().st_dev
    numbers = f"{os.major(device)}:{os.minor(device)}"
    lines = [
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw",
        f"30 22 {numbers} / /x rw - nfs4 server:/x rw",
    ]
    mountinfo = tmp_path / "self" / "mountinfo"
    mountinfo.write_text("\n".join(lines) + "\n")
    assert mounts.network_file_system(str(tmp_path / "ledger"), str(tmp_path)) == "nfs4"
    mountinfo.write_text(lines[1].replace("nfs4", "tmpfs"))
    assert mounts.network_file_system(str(tmp_path / "ledger"), str(tmp_path)) == ""
    mountinfo.unlink()
    assert mounts.network_file_system(str(tmp_path / "ledger"), str(tmp_path)) == ""


@ROOT_ONLY
def test_a_ledger_on_a_shared_file_system_is_warned_of_at_its_making_and_in_status(tmp_path: Path) -> None:
    """A real one needs a server, so the kernel's mount table is covered by a copy that says so."""
    folder = tmp_path / "shared"
    folder.mkdir()
    device = folder.stat().st_dev
    table = tmp_path / "mountinfo"
    table.write_text(f"30 22 {os.major(device)}:{os.minor(device)} / /x rw - nfs4 server:/x rw\n")
    body = f'mount --bind {table} /proc/$$/mountinfo && exec "$@"'
    ledger = str(folder / "ledger")

    def call(*words: str) -> Result:
        done = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", body, "sh", str(SCRIPT), *words],
            capture_output=True,
            text=True,
            timeout=20,
            env={"PATH": PATH},
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    first = call("1", *FOUR, "--ledger", ledger)
    if "mount" in first.err and first.code not in (0, 69):
        pytest.skip(f"/proc/self/mountinfo can't be replaced here: {first.err.strip()}")
    assert first.out == "0\n"
    assert "network file system (nfs4)" in first.err
    assert "network file system (nfs4)" in call("status", "--ledger", ledger, *FOUR).err
