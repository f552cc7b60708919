"""sudo between executor and root program, in all the ways that it is set up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import ROOT_SCRIPT, sudo_rules
from tests.isolation.lab import USERS, Lab
from tests.isolation.privileged_calls import (
    ASK,
    ONE_VIEW,
    SUDO,
    HeldLock,
    held,
    in_terminal,
    opens,
    unchanged,
    wait_for,
    waiting_helper,
)

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

USE_PTY, NO_PTY, DIRECT = "use_pty", "!use_pty", "!use_pty, !pam_session, !pam_setcred"


def set_up(host: Lab, defaults: str) -> None:
    host.sudoers(f"{sudo_rules(tuple(USERS))}Defaults!{ROOT_SCRIPT} {defaults}\n")


def ancestors(pid: int, top: int) -> list[tuple[str, int]]:
    """Names and PIDs of the processes above one, up to its ancestor ``top``."""
    found: list[tuple[str, int]] = []
    while pid != top:
        pid = int(Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()[1])
        found.append((Path(f"/proc/{pid}/comm").read_text(encoding="ascii").strip(), pid))
    return found


@pytest.mark.parametrize("defaults", [USE_PTY, NO_PTY, DIRECT, "requiretty, !requiretty"])
def test_works_without_a_terminal(host: Lab, executor: Agent, defaults: str) -> None:
    set_up(host, defaults)
    done = executor.call(*ASK)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


@pytest.mark.parametrize("defaults", [USE_PTY, NO_PTY, DIRECT, "requiretty"])
def test_works_in_a_terminal(host: Lab, executor: Agent, defaults: str) -> None:
    set_up(host, defaults)
    assert in_terminal(executor, *ASK) == (0, "0,1\r\n")
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


@pytest.mark.parametrize(
    ("defaults", "words", "expected"),
    [
        (DIRECT, ASK, ["python3"]),
        (NO_PTY, ASK, ["sudo", "python3"]),
        (USE_PTY, ("/usr/bin/script", "-qec", " ".join(ASK), "/dev/null"), ["sudo", "sudo", "sh", "script", "python3"]),
    ],
)
def test_knows_its_owner_behind_no_sudo_one_and_two(
    host: Lab, executor: Agent, defaults: str, words: tuple[str, ...], expected: list[str]
) -> None:
    set_up(host, defaults)
    with HeldLock(host):
        call = executor.start(*words)
        above = ancestors(waiting_helper(host), executor.pid)
        assert [name for name, _ in above] == expected
    assert "0,1" in call.finish().out
    assert held(host) == {next(pid for name, pid in above if name != "sudo"): "0,1"}


def test_leaves_the_terminal_when_it_hangs_up(host: Lab, executor: Agent) -> None:
    set_up(host, USE_PTY)
    with HeldLock(host):
        executor.evaluate(
            f"import pty\nwords = {list(ASK)!r}\npid, master = pty.fork()\nif pid == 0: os.execv(words[0], words)\n"
        )
        helper = waiting_helper(host)
        executor.evaluate("os.close(master)")
        wait_for(lambda: not Path(f"/proc/{helper}").exists(), "end of the helper", 2)
    unchanged(host, executor)


@pytest.mark.parametrize(
    "options",
    [
        ("-E",),
        ("-u", "other"),
        ("-D", "/opt"),
        ("-R", "/opt"),
        ("-C", "50"),
        ("-s",),
        ("-i",),
        ("-h", "elsewhere"),
        ("PYTHONPATH=/opt",),
        ("LD_PRELOAD=/opt/mark.so",),
    ],
)
def test_sudo_s_own_options_open_nothing(host: Lab, executor: Agent, options: tuple[str, ...]) -> None:
    done = executor.call("/usr/bin/sudo", "-n", *options, ROOT_SCRIPT, "allocate", "1")
    assert (done.code, done.out) == (1, "")
    unchanged(host, executor)


@pytest.mark.parametrize("options", [("-g", "flink"), ("-u", "root", "-g", "flink"), ("-u", "flink", "-g", "flink")])
def test_a_group_of_the_caller_s_choice_makes_nobody_root(host: Lab, executor: Agent, options: tuple[str, ...]) -> None:
    done = executor.call("/usr/bin/sudo", "-n", *options, ROOT_SCRIPT, "allocate", "1")
    assert (done.code in (1, 77), done.out) == (True, "")
    unchanged(host, executor)


@pytest.mark.parametrize("words", [("/bin/sh", "-c", "id"), (f"{ROOT_SCRIPT}x",), ("/usr/local/libexec/../bin/env",)])
def test_sudo_runs_nothing_else(host: Lab, executor: Agent, words: tuple[str, ...]) -> None:
    done = executor.call("/usr/bin/sudo", "-n", *words)
    assert (done.code, done.out) == (1, "")


def test_a_call_in_the_background_has_no_owner(host: Lab, executor: Agent) -> None:
    assert executor.call("/usr/bin/sudo", "-n", "-b", ROOT_SCRIPT, "allocate", "1").out == ""
    unchanged(host, executor)


def test_a_process_that_gave_up_new_privileges_gets_nothing(host: Lab, executor: Agent) -> None:
    done = executor.call("/usr/bin/setpriv", "--no-new-privs", *ASK)
    assert (done.code, done.out) == (71, "")
    assert "NoNewPrivileges=no" in done.err
    unchanged(host, executor)


def test_root_of_a_user_namespace_is_nobody(host: Lab, executor: Agent) -> None:
    done = executor.call("/usr/bin/unshare", "--user", "--map-root-user", "--mount", *SUDO, "allocate", "1")
    assert (done.code, done.out) == (1, ""), done
    unchanged(host, executor)
