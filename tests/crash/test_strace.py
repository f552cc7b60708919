"""What a log says of an injection, so that none that missed counts as passed. The logs are strace's own, shortened."""

from __future__ import annotations

import pytest

from tests.crash.strace import Call, Fault, calls_in, is_whole

_LISTING = """\
execve("/x/discovery", 0x7ffdf21c1940, 0x7ffdf21c1988) = 0
newfstatat(AT_FDCWD, "/x/state", 0x7ffe06967490, 0) = -1 ENOENT (No such file or directory)
newfstatat(3, "", 0x7ffe069672f0, AT_EMPTY_PATH) = 0
write(4, "#flink-gpu-ledger 1 = \\tuuid"..., 439) = 439
rename("/x/state/ledger.new", "/x/state/ledger") = 0
exit_group(0)                           = ?
+++ exited with 0 +++
"""
_KILLED = "+++ killed by SIGKILL +++\n"


def _call(name: str, nth: int = 1) -> Call:
    return next(call for call in calls_in(_LISTING) if (call.name, call.nth) == (name, nth))


def test_a_log_is_whole_when_the_program_s_end_stands_in_it() -> None:
    assert is_whole(_LISTING)
    assert is_whole(_KILLED)
    assert is_whole(f"17    {_KILLED}")
    assert not is_whole(_LISTING.replace("+++ exited with 0 +++\n", ""))
    assert not is_whole("")


def test_a_listing_tells_place_count_and_arguments() -> None:
    calls = calls_in(_LISTING)
    assert [(call.name, call.nth, call.place) for call in calls[1:4]] == [
        ("newfstatat", 1, 1),
        ("newfstatat", 2, 2),
        ("write", 1, 3),
    ]
    assert calls[1].text == 'newfstatat(AT_FDCWD, "/x/state", 0x, 0)'
    assert calls[3].text.endswith("..., 439)")
    assert len(calls) == 6


@pytest.mark.parametrize(
    ("fault", "log"),
    [
        (Fault(_call("rename")), 'rename("/x/state/ledger.new", "/x/state/ledger") = ?\n' + _KILLED),
        (Fault(_call("newfstatat")), 'newfstatat(AT_FDCWD, "/x/state",  <unfinished ...>) = ?\n' + _KILLED),
        (Fault(_call("exit_group")), "exit_group(0) = ?\n" + _KILLED),
        (
            Fault(_call("rename"), "EIO"),
            '17 rename("/x/state/ledger.new", "/x/state/ledger") = -1 EIO (Input/output error) (INJECTED)\n',
        ),
    ],
)
def test_an_injection_where_it_was_meant_to_be_counts(fault: Fault, log: str) -> None:
    assert fault.missed(log) == ""


@pytest.mark.parametrize(
    ("fault", "log", "why"),
    [
        (Fault(_call("rename")), "+++ exited with 0 +++\n", "only 0 calls"),
        (Fault(_call("rename")), 'rename("/x/other", "/x/state/ledger") = ?\n' + _KILLED, "another one"),
        (Fault(_call("rename")), 'rename("/x/state/ledger.new", "/x/state/ledger") = 0\n', "did not inject"),
        (
            Fault(_call("newfstatat")),
            'newfstatat(AT_FDCWD, "/x/state", 0x1, 0) = 0\nnewfstatat(3, "",  <unfinished ...>) = ?\n' + _KILLED,
            "did not inject",
        ),
        (Fault(_call("rename"), "EIO"), '17 rename("/x/state/ledger.new", "/x/state/ledger") = 0\n', "did not inject"),
    ],
)
def test_an_injection_that_missed_is_noticed(fault: Fault, log: str, why: str) -> None:
    assert why in fault.missed(log)
