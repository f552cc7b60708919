"""Calls that are interrupted, late, or unable to answer: nothing stays half done."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.standins import nvidia_smi as standin
from tests.standins.nvidia_smi import NvidiaSmi, SmiGpu
from tests.standins.shell import Ending
from tests.support.executor import TaskExecutor
from tests.support.paths import reachable
from tests.support.script import PATH, SCRIPT, Result, run

FOUR = ("--backend", "simulated:4")
ROOT_ONLY = pytest.mark.skipif(os.getuid() != 0, reason="needs root: other users, limits")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def traced(*options: str) -> tuple[str, ...]:
    """The script under strace, which injects faults or delays into its system calls."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    probe = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, text=True, check=False)
    if probe.returncode != 0:
        pytest.skip(f"strace can't trace here: {probe.stderr.strip()}")
    return ("strace", "-f", "-o", "/dev/null", *options, str(SCRIPT))


def assert_undone(result: Result, code: int, ledger: Path, before: bytes | None = None) -> None:
    assert (result.code, result.out) == (code, ""), result.err
    assert result.err.startswith("flink-gpu-discovery: ")
    assert result.err.count("\n") == 1
    held = ledger.read_bytes()
    assert held == before if before is not None else held.endswith(b"#end 0\n")


@pytest.mark.parametrize("occurrence", [1, 2], ids=["file", "folder"])
def test_a_disk_that_answers_after_the_deadline_is_too_late(ledger: Path, occurrence: int) -> None:
    slow = traced("-e", "trace=fsync", "-e", f"inject=fsync:delay_exit=1500000:when={occurrence}")
    result = run("2", *FOUR, "--ledger", str(ledger), "--deadline", "1", program=slow)
    assert_undone(result, 75, ledger)
    assert "deadline of 1 s has passed" in result.err


def test_the_deadline_counts_from_the_start_of_the_process(ledger: Path) -> None:
    late = ("/bin/sh", "-c", 'sleep 1.2; exec "$@"', "sh", str(SCRIPT))
    result = run("1", *FOUR, "--ledger", str(ledger), "--deadline", "1", program=late)
    assert (result.code, result.out) == (75, "")
    assert not ledger.exists()


def test_a_lock_won_after_the_deadline_records_nothing(ledger: Path) -> None:
    slow = traced("-e", "trace=flock", "-e", "inject=flock:delay_exit=1500000:when=1")
    result = run("1", *FOUR, "--ledger", str(ledger), "--deadline", "1", program=slow)
    assert (result.code, result.out) == (75, "")
    assert not ledger.exists()


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP"])
@pytest.mark.parametrize("call", ["flock", "rename", "fsync", "unlink"])
def test_a_signal_that_asks_to_end_undoes_what_was_begun(ledger: Path, name: str, call: str) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    with TaskExecutor() as executor:
        executor.call("1", *words)
        before = ledger.read_bytes()
        # The test run itself may ignore SIGHUP, which would be inherited.
        program = (
            "env",
            f"--default-signal={name}",
            *traced("-e", f"trace={call}", "-e", f"inject={call}:signal={name}:when=1"),
        )
        result = run("2", *words, program=program)
        assert_undone(result, 75, ledger, before)
        assert f"ended by signal {getattr(signal, f'SIG{name}').value}" in result.err
        assert run("2", *words).out == "1,2\n"


def test_a_signal_that_the_caller_ignores_stays_ignored(ledger: Path) -> None:
    nohup = ("/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh")
    hup = traced("-e", "trace=rename", "-e", "inject=rename:signal=HUP:when=1")
    assert run("2", *FOUR, "--ledger", str(ledger), program=(*nohup, *hup)).out == "0,1\n"


def test_a_signal_while_a_tool_hangs_ends_the_tool_too(tmp_path: Path) -> None:
    log = tmp_path / "pids"
    standin.install(tmp_path / "bin", NvidiaSmi(ending=Ending.HANG, log=log))
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.write_text(tool.read_text().replace("#!/bin/sh\n", f"#!/bin/sh\necho $$ > {tmp_path}/pid\n"))
    environment = {"PATH": f"{tmp_path / 'bin'}:{PATH}"}
    pipe = subprocess.PIPE
    with subprocess.Popen([SCRIPT, "1", "--backend", "nvidia-smi"], env=environment, stdout=pipe, stderr=pipe) as call:
        while not log.exists():
            time.sleep(0.01)
        call.send_signal(signal.SIGTERM)
        out, err = call.communicate(timeout=10)
    assert (call.returncode, out) == (75, b"")
    assert b"ended by signal 15" in err
    pid = int((tmp_path / "pid").read_text())
    for _ in range(200):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().rpartition(") ")[2].startswith("Z"):
            return
        time.sleep(0.01)
    raise AssertionError(f"nvidia-smi (pid {pid}) still runs")


def test_a_caller_that_ended_meanwhile_owns_nothing(ledger: Path) -> None:
    """Its orphan's parent is another process, which must not be taken for the owner."""
    lock = ledger.with_name("ledger.lock")
    with TaskExecutor() as other:
        other.call("1", *FOUR, "--ledger", str(ledger))
        before = ledger.read_bytes()
        with subprocess.Popen(["flock", "--no-fork", str(lock), "sleep", "30"]) as keeper:
            while subprocess.run(["flock", "-n", lock, "true"], check=False).returncode == 0:
                time.sleep(0.01)
            call = f"{SCRIPT} 1 {' '.join(FOUR)} --ledger {ledger} > {ledger}.out 2> {ledger}.err"
            caller = subprocess.Popen(["/bin/sh", "-c", f"{call} & sleep 0.6"], env={"PATH": PATH})
            assert caller.wait(timeout=10) == 0
            keeper.kill()
        error = Path(f"{ledger}.err")
        for _ in range(500):
            if "has ended meanwhile" in error.read_text():
                break
            time.sleep(0.01)
        assert "has ended meanwhile; nothing was recorded" in error.read_text()
        assert Path(f"{ledger}.out").read_text() == ""
        assert ledger.read_bytes() == before


def test_a_second_resource_that_cannot_be_delivered_leaves_the_first(ledger: Path) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    assert run("1", *words).out == "0\n"
    before = ledger.read_bytes()
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [SCRIPT, "2", *words, "--resource", "b"], stdout=full, stderr=subprocess.PIPE, timeout=20, check=False
        )
    assert done.returncode == 74
    assert ledger.read_bytes() == before


def test_a_take_over_that_cannot_be_delivered_is_undone_and_not_reported(ledger: Path) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    with TaskExecutor() as executor:
        executor.call("4", *words)
        executor.kill()
    before = ledger.read_bytes()
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(
            [SCRIPT, "2", *words, "--check-dead"], stdout=full, stderr=subprocess.PIPE, timeout=20, check=False
        )
    assert done.returncode == 74
    assert b"taken over" not in done.stderr
    assert ledger.read_bytes() == before


def test_a_lock_removed_while_the_ledger_is_written_lets_nobodys_record_go(ledger: Path) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    slow = traced("-e", "trace=fsync", "-e", "inject=fsync:delay_exit=1500000:when=1")
    with TaskExecutor() as second:
        pipe = subprocess.PIPE
        with subprocess.Popen([*slow, "1", *words], stdout=pipe, stderr=pipe, env={"PATH": PATH}) as first:
            while not Path(f"{ledger}.new").exists():
                time.sleep(0.01)
            Path(f"{ledger}.lock").unlink()
            assert second.call("1", *words).out == "0\n"
            out, err = first.communicate(timeout=20)
        assert (first.returncode, out) == (75, b"")
        assert b"was removed or replaced while it was held" in err
        assert f"\t{second.pid}\t" in ledger.read_text()
        assert run("1", *words).out == "1\n"


def test_each_write_is_synced_before_it_takes_the_ledgers_place(ledger: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    calls = "trace=openat,write,fsync,rename"
    program = (*traced("-e", calls)[:3], str(log), "-e", calls, "-P", f"{ledger}.new", "-P", str(tmp_path), str(SCRIPT))
    assert run("1", *FOUR, "--ledger", str(ledger), program=program).out == "0\n"
    names = [line.split()[1].partition("(")[0] for line in log.read_text().splitlines() if "(" in line]
    assert names[-6:] == ["openat", "write", "fsync", "rename", "openat", "fsync"]


def test_a_caller_that_ignores_sigchld_is_served(tmp_path: Path) -> None:
    gpu = SmiGpu(0, "GPU-00000000-0000-4000-8000-000000000000", "00000000:01:00.0")
    standin.install(tmp_path / "bin", NvidiaSmi((gpu,)))
    program = ("/bin/bash", "-c", 'trap "" CHLD; exec "$@"', "bash", str(SCRIPT))
    result = run("1", "--backend", "nvidia-smi", program=program, env={"PATH": f"{tmp_path / 'bin'}:{PATH}"})
    assert (result.code, result.out, result.err) == (0, "0\n", "")


@ROOT_ONLY
@pytest.mark.parametrize("limit", ["--nproc=0", "--nofile=4", "--nofile=5", "--nofile=6", "--nofile=7"])
def test_tiny_limits_are_named(tmp_path: Path, limit: str) -> None:
    standin.install(reachable(tmp_path) / "bin", NvidiaSmi(()))
    program = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "prlimit", limit, str(SCRIPT))
    for backend in ("nvidia-smi", "auto"):
        result = run("1", "--backend", backend, program=program, env={"PATH": f"{tmp_path / 'bin'}:{PATH}"})
        if "error while loading" in result.err or "init_fs_encoding" in result.err:
            pytest.skip(f"Python itself can't start with {limit}")
        assert result.code in (69, 71), result.err
        assert result.err.startswith("flink-gpu-discovery: ")
        assert result.err.count("\n") == 1


@ROOT_ONLY
def test_reclaim_by_root_does_not_lock_the_owners_out(tmp_path: Path) -> None:
    """As systemd's ExecStopPost=+ calls it."""
    folder = reachable(tmp_path) / "state"
    folder.mkdir(mode=0o770)
    os.chown(folder, 65534, 0)
    words = (*FOUR, "--ledger", str(folder / "ledger"))
    nobody = (
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "/bin/sh",
        "-c",
        '"$@"; exit $?',
        "sh",
    )
    assert run("2", *words, program=(*nobody, str(SCRIPT))).out == "0,1\n"
    assert len(run("reclaim", *words).out.splitlines()) == 2
    assert run("2", *words, program=(*nobody, str(SCRIPT))).out == "0,1\n"
    for file in folder.iterdir():
        file.unlink()
    assert run("1", *words).out == "0\n"  # root makes both files
    assert run("2", *words, program=(*nobody, str(SCRIPT))).out == "1,2\n"


def test_a_retry_that_was_answered_keeps_its_gpus_though_the_first_call_fails(ledger: Path) -> None:
    """The first call gives up late; what its owner's retry was told meanwhile must stay recorded."""
    words = ("1", *FOUR, "--ledger", str(ledger))
    slow = traced("-e", "trace=rename", "-e", "inject=rename:delay_exit=1500000:when=1")
    pipe = subprocess.PIPE
    owner = ("--owner-pid", str(os.getpid()))
    late = [*slow, *words, *owner, "--deadline", "1"]
    with subprocess.Popen(late, stdout=pipe, stderr=pipe, env={"PATH": PATH}) as first, TaskExecutor() as other:
        while not ledger.exists():
            time.sleep(0.01)
        assert run(*words, *owner).out == "0\n"
        assert (first.communicate(timeout=20)[0], first.returncode) == (b"", 75)
        assert other.call(*words).out == "1\n"
        assert run(*words, *owner).out == "0\n"


def test_an_answer_that_nobody_reads_ends_at_the_deadline(ledger: Path) -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while True:
            os.write(writer, b"x" * 4096)
    except BlockingIOError:
        os.set_blocking(writer, True)
    start = time.monotonic()
    words = [str(SCRIPT), "1", *FOUR, "--ledger", str(ledger), "--deadline", "1.5"]
    done = subprocess.run(words, stdout=writer, stderr=subprocess.PIPE, timeout=20, check=False)
    os.close(reader)
    os.close(writer)
    assert done.returncode == 75
    assert b"nobody reads standard output" in done.stderr
    assert time.monotonic() - start < 4
    assert ledger.read_bytes().endswith(b"#end 0\n")


def _await_handler(pid: int, number: signal.Signals) -> None:
    """Until the process catches the signal: before that it would simply end it."""
    for _ in range(1000):
        status = Path(f"/proc/{pid}/status").read_text()
        caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.01)
    raise AssertionError(f"{pid} never caught {number.name}")


def test_two_signals_at_once_are_one(ledger: Path) -> None:
    with TaskExecutor() as holder:
        holder.call("4", *FOUR, "--ledger", str(ledger))
        for _ in range(12):
            words = ["env", "--default-signal", str(SCRIPT), "1", *FOUR, "--ledger", str(ledger), "--wait", "6"]
            with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={"PATH": PATH}) as call:
                _await_handler(call.pid, signal.SIGHUP)
                time.sleep(0.1)
                for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                    call.send_signal(number)
                out, err = call.communicate(timeout=10)
            assert (call.returncode, out) == (75, b""), err
            assert err.count(b"\n") == 1


def test_a_lock_that_never_stays_ends_at_the_deadline(ledger: Path) -> None:
    odd = traced("-P", f"{ledger}.lock", "-e", "trace=newfstatat", "-e", "inject=newfstatat:error=ENOENT:when=2+2")
    run("1", *FOUR, "--ledger", str(ledger))
    result = run("1", *FOUR, "--ledger", str(ledger), "--deadline", "1.5", program=odd)
    assert (result.code, result.out) == (75, "")
    assert "replaced again and again" in result.err


@ROOT_ONLY
@pytest.mark.parametrize(("link_owner", "code"), [(0, 0), (1234, 77)])
def test_a_folder_behind_a_link_belongs_to_its_sharers_and_a_strangers_link_leads_nowhere(
    tmp_path: Path, link_owner: int, code: int
) -> None:
    folder = reachable(tmp_path) / "state"
    folder.mkdir(mode=0o770)
    os.chown(folder, 65534, 65534)
    link = tmp_path / "link"
    link.symlink_to(folder)
    os.chown(link, link_owner, link_owner, follow_symlinks=False)
    assert run("1", *FOUR, "--ledger", str(link / "ledger")).code == code
    assert {file.stat().st_uid for file in folder.iterdir()} <= {65534}


def test_what_is_no_file_gets_no_lock_beside_it() -> None:
    assert run("1", *FOUR, "--ledger", "/dev/null").code == 65
    assert not Path("/dev/null.lock").exists()
