"""Owner identity and the proof of death, on real processes and on trees that look like ``/proc``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from flink_gpu_discovery.errors import SystemRefusedError, UsageError
from flink_gpu_discovery.host import Host
from flink_gpu_discovery.models import Owner
from flink_gpu_discovery.processes import ALIVE, DEAD, UNPROVABLE, Processes

# A process whose main thread has ended while another works on, as a JVM's may be.
_MAIN_THREAD_GONE = """
import ctypes, sys, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("ready", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def spawn(body: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    process = spawn("import time; print('ready', flush=True); time.sleep(60)")
    yield process
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


@pytest.fixture
def processes() -> Processes:
    return Processes(Host())


def changed(owner: Owner, **values: object) -> Owner:
    fields = {name: getattr(owner, name) for name in Owner.__slots__}
    return Owner(**{**fields, **values})


def test_the_identity_of_a_real_process(processes: Processes, child: subprocess.Popen[bytes]) -> None:
    owner = processes.owner(child.pid)
    assert owner.pid == child.pid
    assert owner.uid == os.getuid()
    assert owner.boot_id == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert f"pid:[{owner.pid_namespace}]" == str(Path("/proc/self/ns/pid").readlink())
    assert owner.command.startswith("python")
    assert processes.liveness(owner) == ALIVE


def test_a_killed_process_is_dead_as_a_zombie_and_after(processes: Processes, child: subprocess.Popen[bytes]) -> None:
    owner = processes.owner(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # a zombie: not reaped yet
    assert processes.stat(str(child.pid)).state == "Z"
    assert processes.liveness(owner) == DEAD
    with pytest.raises(UsageError, match="has ended"):
        processes.owner(child.pid)
    child.wait()
    assert processes.liveness(owner) == DEAD
    with pytest.raises(UsageError, match="can be seen"):
        processes.owner(child.pid)


def test_another_process_with_the_same_pid_proves_death(processes: Processes, child: subprocess.Popen[bytes]) -> None:
    owner = processes.owner(child.pid)
    assert processes.liveness(changed(owner, start_time=owner.start_time - 2)) == DEAD


def test_another_boot_proves_death(processes: Processes, child: subprocess.Popen[bytes]) -> None:
    assert processes.liveness(changed(processes.owner(child.pid), boot_id="before")) == DEAD


def test_another_pid_namespace_proves_nothing(processes: Processes, child: subprocess.Popen[bytes]) -> None:
    owner = changed(processes.owner(child.pid), pid_namespace=1)
    assert processes.liveness(owner) == UNPROVABLE
    assert not processes.is_dead(owner)


def test_a_main_thread_that_ended_is_no_proof_while_others_live(processes: Processes) -> None:
    process = spawn(_MAIN_THREAD_GONE)
    try:
        for _ in range(200):
            if processes.stat(str(process.pid)).state == "Z":
                break
            os.sched_yield()
        owner = processes.owner(process.pid)
        assert processes.stat(str(process.pid)).state == "Z"
        assert processes.liveness(owner) == ALIVE
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@pytest.mark.parametrize("pid", [1, 0, -1])
def test_init_owns_nothing(processes: Processes, pid: int) -> None:
    with pytest.raises(UsageError, match="can't own GPUs"):
        processes.owner(pid)


def test_the_clock_of_the_deadline_starts_with_the_process(processes: Processes) -> None:
    started = Processes(Host()).started_at()
    assert 0 < started <= float(Path("/proc/uptime").read_text().split()[0]) + 1


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A tree that looks like /proc with one process, this test's own PID."""
    (tmp_path / "sys/kernel/random").mkdir(parents=True)
    (tmp_path / "sys/kernel/random/boot_id").write_text("boot\n")
    process = tmp_path / str(os.getpid())
    (process / "task" / "1").mkdir(parents=True)
    (process / "ns").mkdir()
    (process / "ns/pid").touch()
    (tmp_path / "self").symlink_to(process.name)
    (process / "status").write_text(f"Name:\tx\nTgid:\t{process.name}\nUid:\t{os.getuid()}\t0\t0\t0\n")
    write_stat(process, b"java")
    return tmp_path


def write_stat(process: Path, command: bytes, state: bytes = b"S") -> None:
    rest = b" ".join([b"%d" % number for number in range(4, 53)])
    (process / "stat").write_bytes(b"42 (" + command + b") " + state + b" " + rest + b"\n")


@pytest.mark.parametrize("command", [b"java", b"a) S 1 (b", b"(((", b")))", b"a b", b"\xff", b"", b"x\ny"])
def test_a_command_may_be_called_anything(proc: Path, command: bytes) -> None:
    write_stat(proc / str(os.getpid()), command)
    owner = Processes(Host(proc=str(proc))).owner(os.getpid())
    assert os.fsencode(owner.command) == command
    assert owner.start_time == 22


def test_a_missing_proc_entry_proves_nothing(proc: Path) -> None:
    processes = Processes(Host(proc=str(proc)))
    owner = processes.owner(os.getpid())
    (proc / str(os.getpid()) / "stat").unlink()  # as hidepid=2 shows other users' processes
    assert processes.liveness(owner) == UNPROVABLE


def test_the_proc_of_another_pid_namespace_is_not_believed(proc: Path) -> None:
    (proc / "self").unlink()
    (proc / str(os.getpid())).rename(proc / "4711")
    (proc / "self").symlink_to("4711")
    with pytest.raises(SystemRefusedError, match="another PID namespace"):
        Processes(Host(proc=str(proc))).owner(4711)


def test_a_process_whose_tasks_cannot_be_listed_is_not_proven_dead(proc: Path) -> None:
    processes = Processes(Host(proc=str(proc)))
    owner = processes.owner(os.getpid())
    write_stat(proc / str(os.getpid()), b"java", b"Z")
    assert processes.liveness(owner) == ALIVE


@pytest.mark.skipif(os.getuid() != 0, reason="needs root to become another user")
def test_another_users_process_is_refused(child: subprocess.Popen[bytes]) -> None:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setuid(65534)
            Processes(Host()).owner(child.pid)
        except UsageError as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(pid, 0)
    with os.fdopen(reader) as answer:
        assert f"owner pid {child.pid} (python" in (text := answer.read())
        assert "belongs to uid 0, the caller to uid 65534" in text
