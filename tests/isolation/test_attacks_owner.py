"""Who the root program takes for the owner, whatever the caller pretends to be."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import ROOT_SCRIPT, SCRIPT
from tests.isolation.lab import FLINK, OTHER, Lab
from tests.isolation.privileged_calls import (
    ASK,
    HOME,
    ONE_VIEW,
    SUDO,
    held,
    home,
    opens,
    records,
    refused,
    told,
    unchanged,
    wait_for,
)

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

CALL = " ".join(ASK)
# A child of the agent becomes another user, as only root can let it, and runs the words.
_AS_OTHER = """
import subprocess
def turn(): os.setgroups([]); os.setresgid({uid}, {uid}, {uid}); os.setresuid({uid}, {uid}, {uid})
done = subprocess.run({words!r}, preexec_fn=turn, capture_output=True, text=True)
result = [done.returncode, done.stdout, done.stderr]
"""


@pytest.mark.parametrize("uid", ["7002", "0", "", "-1", "7001x", "99999999999"])
def test_a_forged_sudo_uid_makes_nobody_somebody_else(host: Lab, executor: Agent, uid: str) -> None:
    assert executor.call(*ASK, env={"SUDO_UID": uid}).out == "0,1\n"
    assert {record["uid"] for record in records(host)} == {str(FLINK)}


@pytest.mark.parametrize(("uid", "code"), [(str(FLINK), 64), (str(OTHER), 64), ("", 77), ("root", 77), ("-1", 77)])
def test_root_s_own_call_in_somebody_s_name_is_refused(host: Lab, uid: str, code: int) -> None:
    root = host.executor(uid=0)
    done = root.call(ROOT_SCRIPT, "allocate", "1", env={"SUDO_UID": uid})
    assert (done.code, done.out) == (code, ""), done
    unchanged(host, root)


def test_a_child_of_root_s_gets_nothing_in_its_name(host: Lab) -> None:
    root = host.executor(uid=0)
    code, out, err = root.evaluate(_AS_OTHER.format(uid=FLINK, words=[*ASK]))
    assert (code, out) == (64, ""), err
    unchanged(host, root)


@pytest.mark.parametrize("command", [("allocate", "1"), ("deallocateAll",)])
def test_another_user_s_executor_can_not_be_asked_for(host: Lab, command: tuple[str, ...]) -> None:
    """Its parent becomes another user, which takes root; then the child asks in its own name."""
    root = host.executor(uid=0)
    other = root.child()
    other.evaluate(f"os.setgroups([]); os.setresgid({OTHER}, {OTHER}, {OTHER})\nresult = 0")
    source = (
        "start_r, start_w = os.pipe(); end_r, end_w = os.pipe()\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        f"    os.setresgid({FLINK}, {FLINK}, {FLINK}); os.setresuid({FLINK}, {FLINK}, {FLINK}); os.read(start_r, 1)\n"
        "    os.dup2(end_w, 1); os.dup2(end_w, 2)\n"
        f"    os.execv('/usr/bin/sudo', {[*SUDO, *command]!r})\n"
        f"os.setresuid({OTHER}, {OTHER}, {OTHER}); os.write(start_w, b'x')\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "result = [code, os.read(end_r, 4096).decode()]"
    )
    code, text = other.evaluate(source)
    assert (code, f"belongs to uid {OTHER}" in text) == (64, True), text
    unchanged(host, other)


def test_another_process_can_not_be_named(host: Lab, executor: Agent) -> None:
    second = host.executor()
    for words in (("--owner-pid", str(second.pid)), (f"--owner-pid={second.pid}",)):
        refused(host, second, executor.call(*ASK, *words), 64, "--owner-pid")
        refused(host, second, executor.call(*SUDO, "allocate", "2", *words), 64, "unknown option")


def test_what_one_owner_holds_is_not_given_back_by_another(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    for agent in (host.executor(), host.executor(OTHER)):
        assert agent.call(SCRIPT, "deallocateAll", "--isolate").code == 0
        assert agent.call(SCRIPT, "reclaim", "--isolate").code == 0
    assert held(host) == {executor.pid: "0,1"}


@pytest.mark.parametrize("name", ["sudo", "java", "flink-gpu-disco", "a) S 1 (b", "x\ty\nz\\"])
def test_a_name_of_its_own_shifts_the_owner_nowhere(host: Lab, executor: Agent, name: str) -> None:
    """And it harms neither the ledger nor who reads it."""
    child = executor.child()
    child.evaluate(f"ctypes.CDLL(None).prctl(15, {name.encode()!r})")
    assert child.call(*ASK).out == "0,1\n"
    assert (held(host), opens(child), opens(executor)) == ({child.pid: "0,1"}, "01", "0123")
    status = executor.call(SCRIPT, "status", "--isolate")
    assert (status.code, status.out.count("\n")) == (0, 3)
    by_json = told(executor.call(SCRIPT, "status", "--isolate", "--json"))
    assert [record["owner"]["command"] for record in by_json] == [name] * 2
    assert executor.call(*ASK).out == "0,1\n"


def disguised(host: Lab, executor: Agent, *words: str) -> None:
    """The process that these words begin, which calls from a child of its own, is the owner, and not its parent."""
    call = executor.start(*words)
    done = call.finish()
    assert (done.code, done.out) == (0, "0,1\n"), done
    assert (held(host), opens(executor)) == ({call.pid: "0,1"}, "0123")


def test_an_argument_shifts_the_owner_nowhere(host: Lab, executor: Agent) -> None:
    disguised(host, executor, "/bin/bash", "-c", f"exec -a /usr/bin/sudo /bin/bash -c '{CALL}; exit $?'")


def test_a_script_called_sudo_shifts_the_owner_nowhere(host: Lab, executor: Agent) -> None:
    script = home(host) / "sudo"
    script.write_text(f"#!/bin/sh\n{CALL}\nexit $?\n", encoding="ascii")
    script.chmod(0o755)
    disguised(host, executor, f"{HOME}/sudo")


def test_a_program_called_sudo_shifts_the_owner_nowhere(host: Lab, executor: Agent) -> None:
    shutil.copy("/bin/bash", home(host) / "sudo")
    disguised(host, executor, f"{HOME}/sudo", "-c", f"{CALL}; exit $?")


def test_a_set_uid_program_called_sudo_is_no_owner(host: Lab, executor: Agent) -> None:
    """It is root's own, and its real uid is the caller's as sudo's is; but it could undo any confinement."""
    copy = home(host) / "sudo"
    shutil.copy("/bin/bash", copy)
    copy.chmod(0o4755)
    done = executor.call(f"{HOME}/sudo", "-p", "-c", f"{' '.join(SUDO)} allocate 2; exit $?")
    refused(host, executor, done, 71, "could undo its confinement")


def test_a_copy_of_sudo_is_not_sudo(host: Lab, executor: Agent) -> None:
    copy = home(host) / "sudo"
    shutil.copy("/usr/bin/sudo", copy)
    os.chown(copy, FLINK, FLINK)
    copy.chmod(0o755)
    done = executor.call(f"{HOME}/sudo", *SUDO[1:], "allocate", "2")
    assert (done.code, done.out) == (1, "")
    unchanged(host, executor)
    link = "try: result = os.link('/usr/bin/sudo', '/usr/bin/sudo-too')\nexcept OSError as error: result = error.errno"
    assert executor.evaluate(link) in (1, 13, 30)


def test_a_sudo_to_another_user_is_no_part_of_the_chain(host: Lab) -> None:
    """The launcher's parent is then sudo, run by the other user: neither of the two users' executors."""
    host.sudoers("other ALL=(flink) NOPASSWD: ALL\n", name="to-flink")
    other = host.executor(OTHER)
    done = other.call("/usr/bin/sudo", "-n", "-u", "flink", *ASK)
    assert (done.code, done.out) == (64, ""), done
    assert f"uid {OTHER}" in done.err
    unchanged(host, other)


def test_an_orphan_s_call_is_refused(host: Lab, executor: Agent) -> None:
    home(host)
    executor.call("/bin/sh", "-c", f"(sleep 0.1; exec {CALL} >{HOME}/out 2>{HOME}/err) & exit 0")
    err, out = host.path(f"{HOME}/err"), host.path(f"{HOME}/out")
    said = wait_for(lambda: err.read_text(encoding="utf-8") if err.exists() else "", "word of the orphan's call")
    assert "can't own GPUs" in said or "belongs to uid" in said
    assert out.read_text(encoding="ascii") == ""
    unchanged(host, executor)


def test_a_call_from_inside_a_confinement_counts_as_its_owner_s(host: Lab, executor: Agent) -> None:
    child = executor.child()
    executor.call(*ASK)
    grandchild = child.child()
    for agent in (child, grandchild):
        assert agent.call(*ASK).out == "0,1\n"
        assert agent.call(SCRIPT, "3", "--isolate").code == 64
    assert held(host) == {executor.pid: "0,1"}
    assert [opens(agent) for agent in (executor, child, grandchild)] == ["01"] * 3


def test_who_outlives_its_owner_gets_nothing_of_its_own(host: Lab, executor: Agent) -> None:
    child = executor.child()
    executor.call(*ASK)
    executor.kill()
    for words in (("2",), ("deallocateAll",)):
        done = child.call(SCRIPT, *words, "--isolate")
        assert (done.code, done.out) == (64, ""), done
    assert (opens(child), held(host)) == ("01", {executor.pid: "0,1"})
