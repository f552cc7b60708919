"""Taking over looks first: what a dead owner left behind keeps its GPU."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flink_gpu_discovery.ledger import fileformat
from flink_gpu_discovery.models import Owner, Record
from tests.standins.conftest import nvml_library
from tests.standins.nvml import scenario as nvml
from tests.standins.nvml.faults import Fault, crash, fail
from tests.support.executor import TaskExecutor
from tests.support.nvml_host import host_call
from tests.support.script import MODULE, PATH, ROOT, Result, run

__all__ = ["nvml_library"]

FOUR = ("--backend", "simulated:4")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def dead_owner(ledger: Path) -> Callable[..., Owner]:
    """Records GPUs to an owner that has ended."""

    def record(*gpus: tuple[str, str], cgroup: str = "") -> Owner:
        with TaskExecutor() as executor:
            executor.call("1", "--backend", "simulated:1", "--ledger", str(ledger))
            (template,) = fileformat.parse(ledger.read_bytes())
            executor.kill()
        records = [
            Record(
                uuid=uuid,
                index=index,
                pci_address="",
                resource="gpu",
                owner=template.owner,
                since=template.since,
                cgroup=cgroup,
            )
            for index, uuid in gpus
        ]
        ledger.write_bytes(fileformat.render(tuple(records)))
        return template.owner

    return record


@pytest.fixture
def ask(nvml_library: Path, tmp_path: Path) -> Callable[..., Result]:
    """The command on a host whose GPU 0 computes for pid 4711, and GPU 1 shows a desktop."""
    first, second = nvml.gpus(2)
    busy = nvml.Gpu(first.uuid, processes=(nvml.Process(4711), nvml.Process(4712, memory_mib=None)))
    desktop = nvml.Gpu(second.uuid, processes=(nvml.Process(99, graphics=True),))
    path = nvml.write(nvml.Scenario(gpus=(busy, desktop)), tmp_path / "scenario")
    environment = nvml.environment(nvml_library, path, {})
    return lambda *words: run(*words, program=MODULE, env=environment)


UUIDS = tuple([gpu.uuid for gpu in nvml.gpus(2)])


def test_a_gpu_that_still_computes_is_not_handed_on(
    ledger: Path, dead_owner: Callable[..., Owner], ask: Callable[..., Result]
) -> None:
    dead_owner(("0", UUIDS[0]), ("1", UUIDS[1]))
    words = ("--backend", "nvml", "--check-dead", "--ledger", str(ledger))
    assert ask("1", *words).out == "1\n"
    refused = ask("1", *words, "--resource", "b")
    assert (refused.code, refused.out) == (69, "")
    assert "GPU 0 is still used by pid 4711, 4712, which computes on it" in refused.err
    assert "--take-busy" in refused.err
    assert ask("1", *words, "--resource", "b", "--take-busy").out == "0\n"


def test_reclaim_keeps_a_gpu_that_still_computes_and_says_why(
    ledger: Path, dead_owner: Callable[..., Owner], ask: Callable[..., Result]
) -> None:
    dead_owner(("0", UUIDS[0]), ("1", UUIDS[1]))
    words = ("--backend", "nvml", "--ledger", str(ledger))
    result = ask("reclaim", *words)
    assert result.out.startswith(f"reclaimed GPU 1 ({UUIDS[1]})")
    assert "GPU 0 is kept" in result.err
    assert "pid 4711" in result.err
    assert ask("reclaim", *words).out.startswith("nothing to reclaim")
    assert ask("reclaim", *words, "--take-busy").out.startswith(f"reclaimed GPU 0 ({UUIDS[0]})")


def test_a_free_gpu_may_be_busy_for_others(ledger: Path, ask: Callable[..., Result]) -> None:
    assert ask("2", "--backend", "nvml", "--check-dead", "--ledger", str(ledger)).out == "0,1\n"


@pytest.fixture
def cgroup() -> Iterator[Path]:
    """A real cgroup with a cgroup below it, as an owner's may have."""
    for root in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
        folder = Path(root) / f"flink-gpu-test-{os.getpid()}"
        try:
            (folder / "below").mkdir(parents=True)
        except OSError:
            continue
        if (folder / "cgroup.procs").exists():
            yield folder
            (folder / "below").rmdir()
            folder.rmdir()
            return
        (folder / "below").rmdir()
        folder.rmdir()
    pytest.skip("no cgroup can be made here")


@pytest.mark.parametrize("place", [".", "below"])
def test_a_dead_owner_whose_cgroup_has_processes_keeps_its_gpus(
    ledger: Path, dead_owner: Callable[..., Owner], cgroup: Path, place: str
) -> None:
    uuids = [json.loads(run("inventory", "--json", *FOUR).out)["gpus"][index]["uuid"] for index in range(4)]
    dead_owner(*[(str(index), uuid) for index, uuid in enumerate(uuids)], cgroup=str(cgroup))
    worker = subprocess.Popen(["sleep", "60"])
    try:
        (cgroup / place / "cgroup.procs").write_text(str(worker.pid))
        words = (*FOUR, "--ledger", str(ledger))
        refused = run("1", *words, "--check-dead")
        assert refused.code == 69
        assert f"GPU 0 is still used by pid {worker.pid} in its owner's cgroup" in refused.err
        kept = run("reclaim", *words)
        assert kept.out.startswith("nothing to reclaim")
        assert f"pid {worker.pid}" in kept.err
    finally:
        worker.kill()
        worker.wait()
    assert run("1", *words, "--check-dead").out == "0\n"
    assert len(run("reclaim", *words).out.splitlines()) == 3


def test_a_cgroup_that_is_gone_holds_nothing(ledger: Path, dead_owner: Callable[..., Owner], cgroup: Path) -> None:
    dead_owner(("0", UUIDS[0]), cgroup=str(cgroup / "gone" / "long ago"))
    assert run("reclaim", *FOUR, "--ledger", str(ledger), "--take-busy").out.startswith("reclaimed GPU 0")


def test_a_cgroup_whose_tree_is_not_mounted_here_is_no_proof(
    ledger: Path, dead_owner: Callable[..., Owner], tmp_path: Path
) -> None:
    dead_owner(("0", UUIDS[0]), cgroup=str(tmp_path / "gone"))
    result = run("reclaim", *FOUR, "--ledger", str(ledger))
    assert result.out.startswith("nothing to reclaim")
    assert "no cgroup tree is mounted there" in result.err


def test_a_cgroup_that_cannot_be_read_is_no_proof(
    ledger: Path, dead_owner: Callable[..., Owner], tmp_path: Path
) -> None:
    (tmp_path / "odd" / "cgroup.procs").mkdir(parents=True)
    dead_owner(("0", "GPU-x"), cgroup=str(tmp_path / "odd"))
    result = run("reclaim", *FOUR, "--ledger", str(ledger))
    assert result.out.startswith("nothing to reclaim")
    assert "can't be read" in result.err


@pytest.mark.parametrize(
    "fault",
    [
        fail("nvmlInit_v2", "NVML_ERROR_UNKNOWN"),
        fail("nvmlDeviceGetComputeRunningProcesses_v3", "NVML_ERROR_UNKNOWN", 0),
        fail("*", "NVML_ERROR_GPU_IS_LOST", 0),
        crash("nvmlDeviceGetName", 0),
    ],
    ids=["init", "processes", "lost", "crash"],
)
def test_a_driver_that_cannot_tell_frees_nothing(
    ledger: Path, dead_owner: Callable[..., Owner], nvml_library: Path, tmp_path: Path, fault: Fault
) -> None:
    gpus = nvml.gpus(1)
    dead_owner(("0", gpus[0].uuid))
    result = host_call(nvml_library, tmp_path, ledger, gpus, "reclaim", faults=(fault,))
    assert result.out.startswith("nothing to reclaim")
    assert "whether anything uses it can't be told" in result.err
    taken = host_call(nvml_library, tmp_path, ledger, gpus, "reclaim", "--take-busy", faults=(fault,))
    assert taken.out.startswith("reclaimed")


@pytest.mark.parametrize("whole_first", [True, False])
def test_a_gpu_split_or_joined_while_it_is_held_is_not_given_again(
    ledger: Path, nvml_library: Path, tmp_path: Path, whole_first: bool
) -> None:
    (whole,) = nvml.gpus(1)
    instances = (nvml.MigInstance("MIG-aa", 1), nvml.MigInstance("MIG-bb", 2))
    states = [(whole,), (nvml.Gpu(whole.uuid, mig_mode=True, instances=instances),)]
    before, after = states if whole_first else reversed(states)
    with TaskExecutor() as holder:
        assert host_call(nvml_library, tmp_path, ledger, before, "1", "--owner-pid", str(holder.pid)).code == 0
        refused = host_call(nvml_library, tmp_path, ledger, after, "1")
        assert (refused.code, refused.out) == (69, "")


def test_waiting_looks_again_at_what_a_dying_owner_uses(ledger: Path, nvml_library: Path, tmp_path: Path) -> None:
    """NVML lists the old owner until it is gone; the new one is neither refused because of that nor served blindly."""
    (idle,) = nvml.gpus(1)
    with TaskExecutor() as old:
        busy = nvml.Gpu(idle.uuid, processes=(nvml.Process(old.pid),))
        path = nvml.write(nvml.Scenario(gpus=(busy,)), tmp_path / "scenario")
        environment = {"PATH": PATH, "PYTHONPATH": str(ROOT / "discovery"), **nvml.environment(nvml_library, path, {})}
        words = ("--backend", "nvml", "--ledger", str(ledger))
        assert run("1", *words, "--owner-pid", str(old.pid), program=MODULE, env=environment).out == "0\n"
        pipe = subprocess.PIPE
        command = [*MODULE, "1", *words, "--check-dead", "--wait", "7"]
        with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as new:
            time.sleep(1)
            old.kill()
            time.sleep(0.7)
            assert new.poll() is None  # the driver still lists what the dead one left
            nvml.write(nvml.Scenario(gpus=(idle,)), path.with_suffix(".new")).rename(path)
            out, err = new.communicate(timeout=20)
    assert (new.returncode, out) == (0, "0\n"), err


def test_nvidia_smi_tells_what_computes_too(ledger: Path, dead_owner: Callable[..., Owner], tmp_path: Path) -> None:
    uuid = "GPU-00000000-0000-4000-8000-000000000000"
    dead_owner(("0", uuid))
    tool = tmp_path / "nvidia-smi"
    tool.write_text(
        "#!/bin/sh\n"
        f"case $1 in *compute-apps*) echo '{uuid}, 4711'; echo '[N/A], x'; exit;; esac\n"
        f"echo '0, {uuid}, 00000000:01:00.0, [N/A], GPU'\n"
    )
    tool.chmod(0o755)
    words = ("--backend", "nvidia-smi", "--ledger", str(ledger))
    environment = {"PATH": f"{tmp_path}:{PATH}"}
    refused = run("1", *words, "--check-dead", env=environment)
    assert refused.code == 69
    assert "GPU 0 is still used by pid 4711, which computes on it" in refused.err
    assert "pid 4711" in run("reclaim", *words, env=environment).err
    assert run("1", *words, "--check-dead", "--take-busy", env=environment).out == "0\n"
