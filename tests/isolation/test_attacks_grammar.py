"""What can be said to the root program: its own words and nothing else."""

from __future__ import annotations

import pytest

from tests.isolation.agent import Agent, AgentError
from tests.isolation.installation import ROOT_SCRIPT, SCRIPT
from tests.isolation.lab import Lab
from tests.isolation.privileged_calls import ONE_VIEW, SUDO, held, opens, refused, unchanged

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("",),
        ("2",),
        ("Allocate", "1"),
        ("inventory",),
        ("release", "1"),
        ("--help",),
        ("--version",),
        ("allocate",),
        ("allocate", "-1"),
        ("allocate", "+1"),
        ("allocate", "1.0"),
        ("allocate", "0x1"),
        ("allocate", "10000"),
        ("allocate", "\u0661"),
        ("allocate", " 1"),
        ("allocate", "1\n"),
        ("allocate\n", "1"),
        ("allocate", "1", "1"),
        ("allocate", "1", "2>/run/x"),
        ("allocate", "1;id"),
        ("allocate", "$(id)"),
        ("allocate", "--resource", "gpu", "1"),
        ("allocate", "1", "--"),
        ("allocate", "1", "--resource"),
        ("allocate", "1", "--resource="),
        ("allocate", "1", "--resource", "gpu", "--resource", "gpu"),
        ("allocate", "1", "--resource", "gpu\nx"),
        ("allocate", "1", "--resource", "../gpu"),
        ("allocate", "1", "--resource", "g" * 65),
        ("allocate", "1", "--resource", "gp\u00fc"),
        ("deallocateAll", "1"),
        ("deallocateAll", "--resource", "gpu"),
        ("reclaim", "1"),
        ("status", "status"),
    ],
)
def test_other_words_are_refused(host: Lab, executor: Agent, words: tuple[str, ...]) -> None:
    refused(host, executor, executor.call(*SUDO, *words), 64)


@pytest.mark.parametrize(
    "option",
    [
        *(
            "--backend=simulated:9",
            "--check-dead",
            "--config=/opt/home/conf",
            "--coordinate",
            "--coordination-file=/etc/x",
        ),
        *("--deadline=100", "--debug", "--enable-coordination-mode", "--force", "--gpu=0", "--id=uuid", "--isolate"),
        *("--json", "--ledger=/etc/passwd", "--owner=2", "--owner-pid=2", "--take-busy", "--wait=100", "-I", "-c"),
    ],
)
def test_options_are_refused_with_each_command(host: Lab, executor: Agent, option: str) -> None:
    for command in (("allocate", "1"), ("deallocateAll",), ("reclaim",), ("status",)):
        refused(host, executor, executor.call(*SUDO, *command, option), 64, "unknown")
    refused(host, executor, executor.call(*SUDO, option, "allocate", "1"), 64, "unknown command")


def test_nothing_after_a_nul_reaches_it(host: Lab, executor: Agent) -> None:
    """execve(2) takes strings that end with it, so Python refuses to pass one, and C can't."""
    with pytest.raises(AgentError, match="embedded null byte"):
        executor.call(*SUDO, "allocate", "1\0--owner-pid=2")
    source = (
        "words = [b'sudo', b'-n', SCRIPT, b'allocate', b'1\\0000', None]\n"
        "pid = os.fork()\n"
        "if pid == 0: ctypes.CDLL(None).execv(b'/usr/bin/sudo', (ctypes.c_char_p * 6)(*words))\n"
        "result = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])"
    )
    assert executor.evaluate(source.replace("SCRIPT", repr(ROOT_SCRIPT.encode()))) == 0
    assert (held(host), opens(executor)) == ({executor.pid: "0"}, "0")


@pytest.mark.parametrize("length", [5_000, 100_000])
def test_very_long_words_are_refused_shortly(host: Lab, executor: Agent, length: int) -> None:
    for words in (("x" * length,), ("allocate", "1" * length), ("allocate", "1", "--resource", "x" * length)):
        done = executor.call(*SUDO, *words)
        refused(host, executor, done, 64)
        assert len(done.err) < 1100


def test_very_many_words_are_refused_shortly(host: Lab, executor: Agent) -> None:
    done = executor.call(*SUDO, "allocate", "1", *["null"] * 10_000, "x")
    refused(host, executor, done, 64)
    assert len(done.err) < 1100


def test_bytes_that_are_no_text_are_refused(host: Lab, executor: Agent) -> None:
    for word in ("\udcff\udcfe", "\x1b[2J", "allocate\udc00"[:-1]):
        done = executor.evaluate(
            "import subprocess\n"
            f"done = subprocess.run([*{SUDO!r}, 'allocate', os.fsencode({word!r}) + b'\\xff'], capture_output=True)\n"
            "result = [done.returncode, done.stdout.decode(), done.stderr.decode('ascii')]"
        )
        assert done[:2] == [64, ""]
        assert all(character.isprintable() for character in done[2].rstrip("\n"))
    unchanged(host, executor)


def test_a_word_that_flink_appends_is_ignored(host: Lab, executor: Agent) -> None:
    assert executor.call(*SUDO, "allocate", "1", "null").out == "0\n"
    assert executor.call(SCRIPT, "deallocateAll", "--isolate", "null").code == 0
    assert held(host) == {}


def test_it_does_nothing_for_who_is_not_root(host: Lab, executor: Agent) -> None:
    for command in (("allocate", "1"), ("deallocateAll",), ("reclaim",), ("status",)):
        refused(host, executor, executor.call(ROOT_SCRIPT, *command), 77, "through sudo")
