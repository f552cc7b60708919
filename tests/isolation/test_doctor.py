"""``doctor`` where owners are confined, as the unprivileged user whose task executor is about to start."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.isolation.agent import Agent
from tests.isolation.hierarchies import WITH_V2, View
from tests.isolation.installation import ROOT_SCRIPT, SCRIPT
from tests.isolation.lab import FLINK, Lab
from tests.isolation.privileged_calls import CARDS, ONE_VIEW
from tests.standins.nvml.faults import sleep
from tests.support.script import Result

DOCTOR = (SCRIPT, "doctor", "--quick", "--json", "--isolate", "--backend", "nvml")

one_view = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)


def states(done: Result) -> dict[str, str]:
    return {check["check"]: check["state"] for check in json.loads(done.out)["checks"]}


def test_where_all_is_well(host: Lab, executor: Agent) -> None:
    done = executor.call(*DOCTOR)
    assert (done.code, done.err) == (0, ""), done
    assert states(done) == dict.fromkeys(("driver", "nodes", "ledger", "sudo", "cgroup", "escape"), "ok")


@one_view
def test_a_sandbox_without_new_privileges(host: Lab, executor: Agent) -> None:
    done = executor.call("/usr/bin/setpriv", "--no-new-privs", *DOCTOR)
    assert (done.code, states(done)["sudo"]) == (71, "fault")
    assert "NoNewPrivileges=no" in done.err


@one_view
def test_a_sandbox_with_users_of_its_own(host: Lab, executor: Agent) -> None:
    done = executor.call("/usr/bin/unshare", "--user", "--map-current-user", *DOCTOR)
    (sudo,) = [check for check in json.loads(done.out)["checks"] if check["check"] == "sudo"]
    assert (sudo["state"], sudo["mend"]) == ("fault", "PrivateUsers=no in the unit")


@one_view
def test_a_sandbox_in_which_the_ledgers_folder_is_read_only(host: Lab) -> None:
    folder = "/run/flink-gpu-discovery"
    sandbox = f"mkdir -p {folder} && mount --bind {folder} {folder} && mount -o remount,bind,ro {folder}"
    words = ("unshare", "--mount", "sh", "-c", f'{sandbox} && exec setpriv --reuid={FLINK} --clear-groups "$@"', "sh")
    done = host.run(*words, *DOCTOR)
    assert (done.code, states(done)["ledger"]) == (74, "fault")
    assert f"ReadWritePaths={folder}" in done.err


@one_view
def test_a_sandbox_in_which_cgroups_are_read_only(view: View, new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(view, read_only_cgroups=True)
    lab.nvidia(*CARDS)
    done = lab.executor().call(*DOCTOR)
    assert (done.code, states(done)["cgroup"]) == (71, "fault")
    assert "ProtectControlGroups=no" in done.err


@one_view
def test_a_missing_root_program(host: Lab, executor: Agent) -> None:
    host.path("/usr/local/libexec").rename(host.path("/usr/local/elsewhere"))
    done = executor.call(*DOCTOR)
    assert (done.code, states(done)["sudo"]) == (71, "fault")
    assert ROOT_SCRIPT in done.err


@one_view
def test_nodes_that_the_user_may_not_open(host: Lab, executor: Agent) -> None:
    host.nvidia(*CARDS, hide=False)
    host.path(CARDS[2].node).chmod(0o600)
    done = executor.call(*DOCTOR)
    assert (done.code, states(done)["nodes"]) == (77, "fault")
    assert CARDS[2].node in done.err


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_delegated_unit(host: Lab) -> None:
    unit = host.cgroup("unit")
    executor = host.executor(7003, cgroup=unit)
    unit.chown(7003)
    done = executor.call(*DOCTOR)
    assert (done.code, states(done)["escape"]) == (71, "fault")
    assert "no Delegate=" in done.err


@one_view
def test_a_driver_that_must_be_woken_is_not_waited_for(host: Lab, executor: Agent) -> None:
    host.nvidia(*CARDS, faults=(sleep("nvmlInit_v2", 3000),))
    done = executor.call(*DOCTOR)
    assert (done.code, states(done)["driver"]) == (0, "warning")
    patient = executor.call(*[word for word in DOCTOR if word != "--quick"])
    assert (patient.code, states(patient)["driver"]) == (0, "ok")
