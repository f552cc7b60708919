"""What operators see and free by name: ``status``, and ``reclaim`` with --owner, --gpu and --force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flink_gpu_discovery.ledger import fileformat
from flink_gpu_discovery.models import Owner, Record
from tests.standins.conftest import nvml_library
from tests.standins.nvml import scenario as nvml
from tests.standins.nvml.faults import fail
from tests.support.executor import TaskExecutor
from tests.support.nvml_host import host_call
from tests.support.script import MODULE, Result, run

__all__ = ["nvml_library"]

FOUR = ("--backend", "simulated:4")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


def test_an_operator_frees_by_owner_or_by_gpu(ledger: Path) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    with TaskExecutor() as one, TaskExecutor() as other:
        one.call("2", *words)
        other.call("2", *words)
        before = ledger.read_bytes()
        for pick in (("--owner", str(one.pid)), ("--gpu", "0")):
            refused = run("reclaim", *pick, *words)
            assert (refused.code, refused.out) == (64, "")
            assert "is alive; --force frees it all the same" in refused.err
            assert ledger.read_bytes() == before
        fields = ledger.read_text().splitlines()[4].split("\t")
        uuid, command = fields[0], fields[9]
        assert run("reclaim", "--gpu", uuid, "--force", *words).out == (
            f"reclaimed GPU 3 ({uuid}) of pid {other.pid} ({command}), whose owner is alive\n"
        )
        freed = run("reclaim", "--owner", str(one.pid), "--force", "--json", *words)
        assert [entry["index"] for entry in json.loads(freed.out)["reclaimed"]] == ["0", "1"]
        other.kill()
        assert run("reclaim", "--owner", str(other.pid), *words).out.startswith("reclaimed GPU 2")
    assert ledger.read_bytes().endswith(b"#end 0\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--owner", "4194303"), "owner pid 4194303 is not in the ledger"),
        (("--gpu", "7"), "GPU '7' is not in the ledger"),
        (("--gpu", "GPU-none", "--force"), "is not in the ledger"),
        (("--force",), "--force alone would free every GPU"),
        (("--owner", "5", "--gpu", "1"), "either --owner or --gpu"),
        (("--owner", "x"), "bad value 'x'"),
    ],
)
@pytest.mark.parametrize("exists", [False, True])
def test_what_is_not_there_is_not_freed(ledger: Path, words: tuple[str, ...], message: str, exists: bool) -> None:
    if exists:
        run("1", *FOUR, "--ledger", str(ledger))
    result = run("reclaim", *words, *FOUR, "--ledger", str(ledger))
    assert (result.code, result.out) == (64, "")
    assert message in result.err
    assert ledger.exists() == exists


def test_status_shows_held_gpus_that_are_missing_moved_or_faulty(
    ledger: Path, nvml_library: Path, tmp_path: Path
) -> None:
    first, second, third = nvml.gpus(3)
    failed = nvml.Gpu(third.uuid, remapped_rows=nvml.RemappedRows(failed=True))
    host: dict[str, tuple[nvml.Gpu, ...]] = {"before": (first, second, third), "after": (failed, first)}

    def call(state: str, *words: str) -> Result:
        path = nvml.write(nvml.Scenario(gpus=host[state]), tmp_path / "scenario")
        environment = nvml.environment(nvml_library, path, {})
        return run(*words, "--backend", "nvml", "--ledger", str(ledger), program=MODULE, env=environment)

    assert call("before", "3").out == "0,1,2\n"
    entries = {entry["uuid"]: entry["gpu"] for entry in json.loads(call("after", "status", "--json").out)["records"]}
    assert entries == {
        first.uuid: {"seen": True, "index": "1", "fault": None},
        second.uuid: {"seen": False, "index": None, "fault": None},
        third.uuid: {"seen": True, "index": "0", "fault": "row remapping failed"},
    }
    table = call("after", "status").out
    for words in ("missing", "row remapping failed"):
        assert words in table


def test_status_answers_though_the_driver_does_not(ledger: Path) -> None:
    run("1", *FOUR, "--ledger", str(ledger))
    result = run("status", "--backend", "nvml", "--ledger", str(ledger))
    assert result.code == 0
    assert "?" in result.out
    assert "whether the GPUs are there is unknown" in result.err


def test_an_index_means_what_it_means_today(ledger: Path, nvml_library: Path, tmp_path: Path) -> None:
    first, second = nvml.gpus(2)
    host = (nvml_library, tmp_path, ledger)
    with TaskExecutor() as one, TaskExecutor() as other:
        assert host_call(*host, (first, second), "1", "--owner-pid", str(one.pid)).out == "0\n"
        assert host_call(*host, (first, second), "1", "--owner-pid", str(other.pid)).out == "1\n"
        moved = (second, first)
        refused = host_call(*host, moved, "1")
        assert f"held by pid {one.pid} (" in refused.err
        assert "): 1; pid" in refused.err
        freed = host_call(*host, moved, "reclaim", "--gpu", "1", "--force").out
        assert freed.startswith("reclaimed GPU")
        assert f"of pid {one.pid} (" in freed
        assert host_call(*host, moved, "reclaim", "--gpu", "1", "--force").code == 64
        unknown = fail("nvmlInit_v2", "NVML_ERROR_UNKNOWN")
        broken = host_call(*host, moved, "reclaim", "--gpu", "0", "--force", faults=(unknown,))
        assert broken.code == 64
        assert "name it by its UUID" in broken.err
        assert host_call(*host, moved, "reclaim", "--gpu", second.uuid, "--force").out.endswith(
            "whose owner is alive\n"
        )


def test_one_pid_of_two_namespaces_is_not_freed_by_pid(ledger: Path) -> None:
    words = (*FOUR, "--ledger", str(ledger))
    run("2", *words)
    first, second = fileformat.parse(ledger.read_bytes())
    values = {name: getattr(second.owner, name) for name in Owner.__slots__} | {"pid_namespace": 1}
    rest = {name: getattr(second, name) for name in Record.__slots__ if name != "owner"}
    ledger.write_bytes(fileformat.render((first, Record(owner=Owner(**values), **rest))))
    result = run("reclaim", "--owner", str(first.owner.pid), "--force", *words)
    assert (result.code, result.out) == (64, "")
    assert "is the PID of several owners" in result.err
    assert first.uuid in result.err
