"""The launcher and the root program together: what an unprivileged executor gets, and what is refused."""

from __future__ import annotations

import os

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import ROOT_SCRIPT, SCRIPT
from tests.isolation.lab import FLINK, OTHER, Lab
from tests.isolation.privileged_calls import ASK, ONE_VIEW, SUDO, held, opens, records, refused, told, unchanged

one_view = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)


def test_an_executor_gets_its_gpus_and_no_others(host: Lab, executor: Agent) -> None:
    done = executor.call(*ASK)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert opens(executor) == "01"
    assert [(record["pid"], record["uid"]) for record in records(host)] == [(str(executor.pid), str(FLINK))] * 2
    second = host.executor()
    assert second.call(*ASK).out == "0,1\n"
    assert (opens(second), held(host)) == ("23", {executor.pid: "0,1", second.pid: "2,3"})


def test_a_repeated_call_gives_the_same(host: Lab, executor: Agent) -> None:
    assert {executor.call(*ASK).out for _ in range(3)} == {"0,1\n"}
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


def test_what_was_given_back_can_be_opened_no_more(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    assert executor.call(SCRIPT, "deallocateAll", "--isolate").code == 0
    assert (opens(executor), held(host)) == ("", {})
    assert executor.call(SCRIPT, "1", "--isolate").out == "0\n"
    assert opens(executor) == "0"


@one_view
def test_the_draft_s_release_gives_back_too(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    assert executor.call(SCRIPT, "release", "2", "--isolate").code == 0
    assert held(host) == {}


@one_view
def test_the_settings_file_alone_can_ask_for_isolation(host: Lab, executor: Agent) -> None:
    host.settings("[flink-gpu-discovery]\nisolate = yes\n")
    assert executor.call(SCRIPT, "1").out == "0\n"
    assert opens(executor) == "0"


@one_view
def test_root_needs_no_sudo(host: Lab) -> None:
    host.sudoers("root ALL=(ALL) !ALL\n")
    host.path(ROOT_SCRIPT).unlink()
    executor = host.executor(uid=0)
    assert executor.call(*ASK).out == "0,1\n"
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


@one_view
def test_everybody_may_read_the_status(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    by_other = told(host.executor(OTHER).call(SCRIPT, "status", "--isolate", "--json"))
    assert [record["owner"]["pid"] for record in by_other] == [executor.pid] * 2
    assert [record["confinement"] for record in by_other] == ["unknown: ask as root"] * 2
    assert executor.call(*SUDO, "status").out.count(" in force ") == 2


@one_view
def test_reclaim_frees_an_owner_that_has_ended(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    other = host.executor(OTHER)
    assert other.call(SCRIPT, "reclaim", "--isolate").out.startswith("nothing to reclaim")
    executor.kill()
    assert other.call(SCRIPT, "reclaim", "--isolate").out.count("reclaimed GPU") == 2
    unchanged(host, other)


@one_view
@pytest.mark.parametrize(
    "option",
    [
        "--backend=nvml",
        "--check-dead",
        "--deadline=5",
        "--id=uuid",
        "--ledger=/tmp/ledger",
        "--take-busy",
        "--wait=1",
        "--owner-pid={pid}",
        "--config=/dev/null",
    ],
)
def test_an_option_that_would_get_lost_is_refused(host: Lab, executor: Agent, option: str) -> None:
    done = executor.call(*ASK, option.format(pid=executor.pid))
    name = option.partition("=")[0]
    mend = "be root" if name in ("--owner-pid", "--config") else "set it in the settings file"
    refused(host, executor, done, 64, name, mend)


@one_view
@pytest.mark.parametrize("words", [("--force", "--owner={pid}"), ("--gpu=0",), ("--take-busy",), ("--json",)])
def test_reclaim_takes_no_choice_of_the_caller_s(host: Lab, executor: Agent, words: tuple[str, ...]) -> None:
    executor.call(*ASK)
    chosen = [word.format(pid=executor.pid) for word in words]
    done = host.executor(OTHER).call(SCRIPT, "reclaim", "--isolate", *chosen)
    assert (done.code, done.out, held(host)) == (64, "", {executor.pid: "0,1"})


@one_view
@pytest.mark.parametrize("variable", ["CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"])
@pytest.mark.parametrize("value", ["2,3", "", "none"])
def test_a_variable_that_would_narrow_is_refused(host: Lab, executor: Agent, variable: str, value: str) -> None:
    refused(host, executor, executor.call(*ASK, env={variable: value}), 64, variable, "doesn't reach", "unset it")


@one_view
def test_a_variable_that_shows_all_is_none_of_these(host: Lab, executor: Agent) -> None:
    assert executor.call(*ASK, env={"NVIDIA_VISIBLE_DEVICES": "all"}).out == "0,1\n"


@one_view
def test_without_sudo_it_is_said_what_is_missing(host: Lab, executor: Agent) -> None:
    for folder in ("upper", "work"):
        host.path(f"/opt/{folder}").mkdir()
    os.mknod(host.path("/opt/upper/sudo"), 0o020000, 0)  # an overlay's sign for what is deleted
    layers = "lowerdir=/usr/bin,upperdir=/opt/upper,workdir=/opt/work"
    assert host.run("mount", "-n", "-t", "overlay", "-o", layers, "bin", "/usr/bin").code == 0
    refused(host, executor, executor.call(*ASK), 71, "/usr/bin/sudo, which is missing")


@one_view
def test_without_the_root_program_it_is_said_what_is_missing(host: Lab, executor: Agent) -> None:
    host.path(ROOT_SCRIPT).unlink()
    refused(host, executor, executor.call(*ASK), 71, f"{ROOT_SCRIPT}, which is missing")


@one_view
def test_who_is_not_in_sudoers_gets_nothing(host: Lab, executor: Agent) -> None:
    host.sudoers("other ALL=(root) NOPASSWD: NOSETENV: /bin/false\n")
    done = executor.call(*ASK)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("sudo: ")
    unchanged(host, executor)


@one_view
def test_no_gpu_is_given_without_asking_anybody(host: Lab, executor: Agent) -> None:
    host.sudoers("# nobody\n")
    done = executor.call(SCRIPT, "0", "--isolate")
    assert (done.code, done.out, done.err) == (0, "", "")
    unchanged(host, executor)


@one_view
def test_too_few_gpus_change_nothing(host: Lab, executor: Agent) -> None:
    refused(host, executor, executor.call(SCRIPT, "5", "--isolate"), 69)
