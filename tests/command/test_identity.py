"""Who counts as dead, with real namespaces, real users and a real hidden ``/proc``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from flink_gpu_discovery.ledger import fileformat
from flink_gpu_discovery.models import Owner, Record
from tests.support.executor import TaskExecutor
from tests.support.paths import reachable
from tests.support.script import PATH, SCRIPT, Result, run

FOUR = ("--backend", "simulated:4")
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root: namespaces, mounts, other users")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def liveness(ledger: Path) -> dict[str, str]:
    answer = json.loads(run("status", "--json", *FOUR, "--ledger", str(ledger)).out)
    return {record["index"]: record["owner"]["liveness"] for record in answer["records"]}


def rewritten(ledger: Path, **changes: Any) -> None:
    """The same ledger with other identities."""
    records = []
    for record in fileformat.parse(ledger.read_bytes()):
        values = {name: getattr(record.owner, name) for name in Owner.__slots__} | changes
        rest = {name: getattr(record, name) for name in Record.__slots__ if name != "owner"}
        records.append(Record(owner=Owner(**values), **rest))
    ledger.write_bytes(fileformat.render(tuple(records)))


def test_after_a_reboot_every_owner_is_dead_though_its_pid_lives(ledger: Path) -> None:
    with TaskExecutor() as executor, TaskExecutor() as successor:
        executor.call("4", *FOUR, "--ledger", str(ledger))
        rewritten(ledger, boot_id="00000000-0000-4000-8000-000000000000")
        assert set(liveness(ledger).values()) == {"dead"}
        assert successor.call("4", *FOUR, "--ledger", str(ledger), "--check-dead").out == "0,1,2,3\n"


@ROOT_ONLY
def test_an_owner_in_another_pid_namespace_is_never_taken_for_dead(ledger: Path) -> None:
    """Its PID means another process there; it is alive until its own namespace says otherwise."""
    body = f"sleep 60 & {SCRIPT} 4 {' '.join(FOUR)} --ledger {ledger} --owner-pid $!; wait"
    namespace = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child", "/bin/sh", "-c", body],
        env={"PATH": PATH},
        stdout=subprocess.PIPE,
    )
    assert namespace.stdout is not None
    try:
        assert namespace.stdout.readline() == b"0,1,2,3\n"
        assert set(liveness(ledger).values()) == {"unprovable"}
        refused = run("1", *FOUR, "--ledger", str(ledger), "--check-dead")
        assert (refused.code, refused.out) == (69, "")
        assert run("reclaim", *FOUR, "--ledger", str(ledger)).out.startswith("nothing to reclaim")
        table = run("status", *FOUR, "--ledger", str(ledger)).out
        assert "unprovable" in table
    finally:
        namespace.kill()
        namespace.wait()
        namespace.stdout.close()
    assert set(liveness(ledger).values()) == {"unprovable"}
    forced = run("reclaim", "--gpu", "0", "--force", *FOUR, "--ledger", str(ledger)).out
    assert forced.endswith("whose owner is unprovable\n")


def as_nobody_behind_hidepid(*words: str) -> Result:
    """The command as uid 65534 where ``/proc`` shows each user its own processes only."""
    become = "setpriv --reuid 65534 --regid 65534 --clear-groups"
    body = f'mount -t proc -o hidepid=2 proc /proc && exec {become} "$@"'
    done = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", body, "sh", str(SCRIPT), *words],
        capture_output=True,
        text=True,
        timeout=20,
        env={"PATH": PATH},
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr)


@ROOT_ONLY
def test_a_hidden_proc_entry_proves_nothing_and_a_missing_process_does(tmp_path: Path) -> None:
    folder = reachable(tmp_path) / "open"
    folder.mkdir()
    ledger = folder / "ledger"
    words = ("--backend", "simulated:4", "--ledger", str(ledger))
    with TaskExecutor() as executor:
        assert executor.call("4", *words).code == 0
        for file in folder.iterdir():
            file.chmod(0o666)
        folder.chmod(0o770)
        os.chown(folder, 65534, 65534)
        shown = as_nobody_behind_hidepid("status", "--json", *words)
        if "mount" in shown.err:
            pytest.skip(f"hidepid=2 can't be mounted here: {shown.err.strip()}")
        assert {record["owner"]["liveness"] for record in json.loads(shown.out)["records"]} == {"unprovable"}
        assert as_nobody_behind_hidepid("reclaim", *words).out.startswith("nothing to reclaim")
        executor.kill()
        shown = as_nobody_behind_hidepid("status", "--json", *words)
        assert {record["owner"]["liveness"] for record in json.loads(shown.out)["records"]} == {"dead"}


@ROOT_ONLY
def test_owners_of_different_users_share_a_ledger_through_their_group(tmp_path: Path) -> None:
    """The folder's group is what they share: each may replace the file that the other made."""
    folder = reachable(tmp_path) / "shared"
    folder.mkdir()
    folder.chmod(0o770)
    os.chown(folder, 1001, 3000)
    ledger = folder / "ledger"
    words = ("2", *FOUR, "--ledger", str(ledger))
    holders = []
    try:
        answers = []
        for uid in (1001, 1002):
            body = '"$@"; exec sleep 60'
            command = ["/bin/sh", "-c", body, "sh", str(SCRIPT), *words]
            pipe = subprocess.PIPE
            environment = {"PATH": PATH}
            holder = subprocess.Popen(command, user=uid, group=uid, extra_groups=[3000], stdout=pipe, env=environment)
            holders.append(holder)
            assert holder.stdout is not None
            answers.append(holder.stdout.readline())
        assert answers == [b"0,1\n", b"2,3\n"]
        assert (ledger.stat().st_gid, ledger.stat().st_mode & 0o777) == (3000, 0o660)
        assert set(liveness(ledger).values()) == {"alive"}
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            assert holder.stdout is not None
            holder.stdout.close()
    assert set(liveness(ledger).values()) == {"dead"}


@ROOT_ONLY
def test_a_time_namespace_makes_nobody_dead(ledger: Path) -> None:
    """``/proc`` shows other start times there."""
    shifted = ("unshare", "--time", "--boottime", "100000", "--fork", str(SCRIPT))
    if run("--version", program=shifted).code != 0:
        pytest.skip(f"no time namespace can be made here: {run('--version', program=shifted).err.strip()}")
    words = (*FOUR, "--ledger", str(ledger))
    with TaskExecutor() as one, TaskExecutor() as other:
        assert one.call("2", *words).out == "0,1\n"
        assert run("2", *words, "--owner-pid", str(other.pid), program=shifted).out == "2,3\n"
        assert set(liveness(ledger).values()) == {"alive"}
        seen = json.loads(run("status", "--json", *words, program=shifted).out)["records"]
        assert {record["owner"]["liveness"] for record in seen} == {"alive"}
        assert other.call("2", *words).out == "2,3\n"


@ROOT_ONLY
def test_a_time_namespace_shifted_by_part_of_a_tick_makes_nobody_dead(ledger: Path) -> None:
    body = (
        "import ctypes, os, sys\n"
        "assert ctypes.CDLL(None, use_errno=True).unshare(0x80) == 0, os.strerror(ctypes.get_errno())\n"
        "open('/proc/self/timens_offsets', 'w').write('boottime 5 505000000')\n"
        "pid = os.fork()\n"
        "pid or os.execv(sys.argv[1], sys.argv[1:])\n"
        "os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\n"
    )
    shifted = (sys.executable, "-c", body, str(SCRIPT))
    probe = run("--version", program=shifted)
    if probe.code != 0:
        pytest.skip(f"no time namespace can be made here: {probe.err.strip()[-200:]}")
    words = (*FOUR, "--ledger", str(ledger))
    with TaskExecutor() as one:
        assert one.call("2", *words).out == "0,1\n"
        seen = json.loads(run("status", "--json", *words, program=shifted).out)["records"]
        assert {record["owner"]["liveness"] for record in seen} == {"alive"}


@ROOT_ONLY
def test_a_container_with_a_boot_id_of_its_own_is_refused(ledger: Path, tmp_path: Path) -> None:
    """As systemd-nspawn mounts one: its owners and the host's would look dead to each other."""
    fake = tmp_path / "boot_id"
    fake.write_text("00000000-0000-4000-8000-000000000000\n")
    body = f'mount --bind {fake} /proc/sys/kernel/random/boot_id && exec "$@"'
    program = ("unshare", "--mount", "--propagation", "private", "/bin/sh", "-c", body, "sh", str(SCRIPT))
    result = run("1", *FOUR, "--ledger", str(ledger), program=program)
    assert (result.code, result.out) == (71, "")
    assert "covered by a mount" in result.err
    assert run("1", *FOUR, program=program).out == "0\n"


def test_a_thread_is_no_owner(ledger: Path) -> None:
    ready, end = threading.Event(), threading.Event()

    def live() -> None:
        ready.set()
        end.wait(30)

    thread = threading.Thread(target=live)
    thread.start()
    ready.wait(10)
    try:
        result = run("1", *FOUR, "--ledger", str(ledger), "--owner-pid", str(thread.native_id))
    finally:
        end.set()
        thread.join()
    assert (result.code, result.out) == (64, "")
    assert f"is a thread of pid {os.getpid()}; give {os.getpid()}" in result.err
