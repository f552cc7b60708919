"""How what an installed script says is judged; the script's part is played, so that every answer can be had."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import probe

GPU = {"index": "0", "uuid": "GPU-0", "fault": None}
BAD = {"index": "1", "uuid": "GPU-1", "fault": "uncorrectable ECC errors"}
OK = {"check": "driver", "state": "ok", "what": "nvml sees 1 GPUs", "mend": None}
CGROUP = {"check": "cgroup", "state": "ok", "what": "a confinement would be made", "mend": None}


class Host:
    """Answers by the command that the script is given; ``calls`` are the words after ``runuser``'s."""

    def __init__(self, **answers: tuple[int, str, str]) -> None:
        self.answers = {"--version": (0, "flink-gpu-discovery 1.2.3\n", ""), "0": (0, "", ""), **answers}
        self.answers.setdefault("inventory", (0, json.dumps({"gpus": [GPU]}), ""))
        self.answers.setdefault("doctor", (0, json.dumps({"checks": [OK]}), ""))
        self.answers.setdefault("sudo", (0, "", ""))
        self.calls: list[list[str]] = []

    def run(self, words: list[str]) -> tuple[int, str, str]:
        assert words[:2] == ["/usr/sbin/runuser", "-u"]
        self.calls.append([words[2], *words[4:]])
        return self.answers["sudo" if words[4] == "/usr/bin/sudo" else words[5]]


def judged(host: Host, **changed: Any) -> probe.Findings:
    asked = {"users": ["flink"], "calls": [["--resource", "gpu"]], "isolated": False, "expected": "", **changed}
    found: probe.Findings = probe.look(host.run, **asked)
    return found


def test_a_sound_host_has_no_problems() -> None:
    host = Host()
    found = judged(host)
    assert (found.problems, found.warnings, found.version, found.healthy) == ([], [], "1.2.3", 1)
    assert ["flink", probe.SCRIPT, "0", "--resource", "gpu"] in host.calls


def test_with_isolation_every_user_is_taken_to_root() -> None:
    host = Host(doctor=(0, json.dumps({"checks": [OK, CGROUP]}), ""))
    assert judged(host, users=["flink", "other"], isolated=True).problems == []
    for user in ("flink", "other"):
        assert [user, "/usr/bin/sudo", "-n", "--", probe.ROOT_SCRIPT, "status"] in host.calls


def test_settings_that_do_not_confine_are_a_problem_where_isolation_is_wanted() -> None:
    (problem,) = judged(Host(), isolated=True).problems
    assert problem.startswith("the host's settings don't say 'isolate = yes', so TaskManagers are not confined")


@pytest.mark.parametrize(("right", "given", "act"), [("-x", "scripts", "start"), ("-r", "files", "read")])
def test_what_flink_s_users_can_not_reach_is_a_problem(right: str, given: str, act: str) -> None:
    asked = {"users": ["flink", "other"], given: ["/opt/a"]}
    host = Host(**{right: (1, "", "")})
    mend = "see that it is there, and its mode and folders"
    assert judged(host, **asked).problems == [f"as {user}: can't {act} /opt/a; {mend}" for user in asked["users"]]
    assert ["other", "/usr/bin/test", right, "/opt/a"] in host.calls
    assert judged(Host(**{right: (0, "", "")}), **asked).problems == []


def test_what_sudo_refuses_is_a_problem() -> None:
    host = Host(sudo=(1, "", "sudo: a password is required\n"))
    assert judged(host, isolated=True).problems == ["as flink: exit code 1: sudo: a password is required"]


def test_a_script_that_cannot_be_called_as_flink_would_is_a_problem() -> None:
    host = Host(**{"0": (78, "", "flink-gpu-discovery: /etc/x.conf:3: unknown setting\n")})
    assert judged(host).problems == ["as flink: exit code 78: flink-gpu-discovery: /etc/x.conf:3: unknown setting"]


def test_fewer_gpus_than_expected_are_a_problem_and_the_faulty_one_is_named() -> None:
    found = judged(Host(inventory=(0, json.dumps({"gpus": [GPU, BAD]}), "")), expected="2")
    assert found.problems == ["1 of 2 GPUs are healthy, 2 expected"]
    assert found.warnings == ["GPU 1: uncorrectable ECC errors"]


def test_without_an_expectation_one_healthy_gpu_is_needed() -> None:
    assert judged(Host(inventory=(0, json.dumps({"gpus": [GPU, BAD]}), ""))).problems == []
    assert judged(Host(inventory=(0, json.dumps({"gpus": [BAD]}), ""))).problems == ["none of 1 GPUs is healthy"]


def test_a_missing_driver_is_a_problem_unless_no_gpu_is_expected() -> None:
    fault = {"check": "driver", "state": "fault", "what": "no GPU driver answered", "mend": "install one"}
    answers = {"inventory": (71, "", "no GPU driver answered\n"), "doctor": (71, json.dumps({"checks": [fault]}), "")}
    assert judged(Host(**answers)).problems == ["GPUs can't be listed: no GPU driver answered"]
    assert judged(Host(**answers), expected="0").problems == []


def test_a_gpu_where_none_is_expected_is_a_problem() -> None:
    assert judged(Host(), expected="0").problems == ["1 of 1 GPUs are healthy, 0 expected"]


def test_what_doctor_finds_is_passed_on() -> None:
    checks = [
        {"check": "ledger", "state": "fault", "what": "it is damaged", "mend": "see status"},
        {"check": "driver", "state": "warning", "what": "slow", "mend": None},
    ]
    found = judged(Host(doctor=(65, json.dumps({"checks": checks}), "")))
    assert found.problems == ["ledger: it is damaged; see status"]
    assert found.warnings == ["driver: slow"]


def test_doctor_is_asked_as_each_user_and_what_it_tells_all_is_told_once() -> None:
    """An extra user may be kept from the ledger that the main one can use."""
    slow = {"check": "driver", "state": "warning", "what": "slow", "mend": None}
    barred = {"check": "ledger", "state": "fault", "what": "uid 7 may not write to /run/x", "mend": "chown it"}
    answers = {"flink": [OK, slow], "eve": [OK, slow, barred]}

    class Shared(Host):
        def run(self, words: list[str]) -> tuple[int, str, str]:
            self.answers["doctor"] = (0, json.dumps({"checks": answers[words[2]]}), "")
            return super().run(words)

    found = judged(Shared(), users=["flink", "eve"])
    assert found.problems == ["as eve: ledger: uid 7 may not write to /run/x; chown it"]
    assert found.warnings == ["driver: slow"]


def test_a_doctor_that_can_not_answer_is_a_problem() -> None:
    assert judged(Host(doctor=(1, "", "internal error\n"))).problems == ["doctor ended with 1: internal error"]
