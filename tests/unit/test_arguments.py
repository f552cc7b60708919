"""The command line's grammar."""

from __future__ import annotations

import pytest

from flink_gpu_discovery import arguments, usage
from flink_gpu_discovery.errors import UsageError

AMOUNTS = ["", "-1", "+1", "1.5", "two", "9" * 30, "٣", "10000", " 1", "1 ", "0x1", "1e1", "²", "\n", "--", "-"]


@pytest.mark.parametrize(
    ("words", "command", "amount"),
    [
        (["2"], "allocate", 2),
        (["2", "null"], "allocate", 2),
        (["0"], "allocate", 0),
        (["9999"], "allocate", 9999),
        (["007"], "allocate", 7),
        (["allocate", "2"], "allocate", 2),
        (["allocate", "2", "null"], "allocate", 2),
        (["release", "2"], "release", 2),
        (["deallocateAll"], "deallocateAll", 0),
        (["deallocateAll", "null"], "deallocateAll", 0),
        (["status"], "status", 0),
        (["--version"], "version", 0),
        (["--help"], "help", 0),
        (["help"], "help", 0),
    ],
)
def test_commands(words: list[str], command: str, amount: int) -> None:
    request = arguments.parse(words)
    assert (request.command, request.amount) == (command, amount)


@pytest.mark.parametrize("form", [["{}"], ["allocate", "{}"], ["release", "{}"]], ids=["bare", "allocate", "release"])
@pytest.mark.parametrize("amount", AMOUNTS)
def test_bad_amounts_are_refused(form: list[str], amount: str) -> None:
    with pytest.raises(UsageError):
        arguments.parse([word.format(amount) for word in form])


@pytest.mark.parametrize(
    "words",
    [
        ["--ledger", "/x"],
        ["--ledger=/x"],
        ["--coordination-file", "/x"],
        ["--coordination-file=/x"],
        ["null", "--ledger", "/x", "null"],
    ],
)
def test_an_option_with_a_value(words: list[str]) -> None:
    assert arguments.parse(["2", *words]).given.text("ledger") == "/x"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command"),
        (["allocate"], "needs an AMOUNT"),
        (["allocate", "--coordinate"], "needs an AMOUNT"),
        (["--coordinate", "2"], "stands before the command"),
        (["frobnicate"], "unknown command 'frobnicate'"),
        (["2", "3"], "unknown argument '3' of allocate"),
        (["deallocateAll", "2"], "unknown argument '2' of deallocateAll"),
        (["2", "--frob"], "unknown option '--frob' of allocate"),
        (["2", "-c"], "unknown option '-c' of allocate"),
        (["2", "ledger"], "unknown argument 'ledger'"),
        (["2", "--coord"], "unknown option '--coord'"),
        (["2", "--"], "unknown option '--'"),
        (["2", "--json"], "unknown option '--json'"),
        (["2", "--help"], "unknown option '--help'"),
        (["2", "--version"], "unknown option '--version'"),
        (["allocate", "2", "--help"], "unknown option '--help'"),
        (["status", "--check-dead"], "unknown option '--check-dead' of status"),
        (["2", "--coordinate", "--coordinate"], "given twice"),
        (["2", "--ledger", "/a", "--ledger", "/b"], "given twice"),
        (["2", "--ledger", "/a", "--coordination-file", "/b"], "given twice"),
        (["2", "--ledger"], "--ledger needs a value"),
        (["2", "--ledger", ""], "--ledger needs a value"),
        (["2", "--ledger="], "--ledger needs a value"),
        (["2", "--ledger", "--wait", "1"], "--ledger needs a value"),
        (["2", "--coordinate=yes"], "takes no value"),
        (["2", "--ledger", "/" * 5000], "5000 characters long"),
        (["2", "--enable-coordination"], "write --enable-coordination-mode"),
    ],
)
def test_misuse_is_refused_with_its_reason(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        arguments.parse(words)


@pytest.mark.parametrize("command", arguments.OPTIONS_OF)
def test_each_command_has_a_help_that_names_its_options_and_fits_a_screen(command: str) -> None:
    assert arguments.parse([command, "--help"]).topic == command
    text = usage.text(command)
    for option in arguments.OPTIONS_OF[command]:
        assert f"--{option}" in text
    assert max([len(line) for line in [*text.splitlines(), *usage.PROGRAM.splitlines()]]) <= 90


@pytest.mark.parametrize("command", arguments.OPTIONS_OF)
def test_the_programs_help_names_each_command(command: str) -> None:
    assert f"flink-gpu-discovery {command}" in usage.PROGRAM
