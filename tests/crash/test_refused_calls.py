"""Errors from every system call on the ledger's files, one at a time: all or nothing, and one line that says why.

ENOSPC, EIO and EROFS come to exit code 74, EACCES to 77; an interrupted call is repeated. No GPU is printed and none
recorded, unless the error doesn't matter: then the answer is the right one. A disk that is full stays full, so each
call also fails together with all later ones of its name.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.crash import verdict
from tests.crash.findings import Findings
from tests.crash.stage import Stage
from tests.crash.strace import Fault

pytestmark = pytest.mark.timeout(240)
_ERRORS = ("ENOSPC", "EIO", "EROFS", "EACCES", "EINTR")
_LASTING = ("ENOSPC", "EIO")


def test_any_call_on_the_ledgers_files_may_fail_once(stage: Stage, findings: Findings) -> None:
    paths = stage.paths()
    calls = stage.list_calls(paths=paths)
    _fail(stage, [Fault(call, error, paths=paths) for call in calls for error in _ERRORS], findings)


@pytest.mark.slow
def test_any_call_on_the_ledgers_files_may_fail_from_then_on(stage: Stage, findings: Findings) -> None:
    paths = stage.paths()
    calls = stage.list_calls(paths=paths)
    faults = [Fault(call, error, lasting=True, paths=paths) for call in calls for error in _LASTING]
    _fail(stage, faults, findings)


def test_any_write_to_the_standard_streams_may_fail(stage: Stage, findings: Findings) -> None:
    calls = [call for call in stage.list_calls(names=("write",)) if call.text.startswith(("write(1,", "write(2,"))]
    if not stage.answer:
        assert not calls
        return
    _fail(stage, [Fault(call, error) for call in calls for error in (*_ERRORS, "EPIPE")], findings)


def _fail(stage: Stage, faults: Iterable[Fault], findings: Findings) -> None:
    for fault in faults:
        result, files, missed = stage.suffer(fault)
        findings.add(stage, fault, [missed] if missed else verdict.of_an_error(stage, fault, result, files))
    findings.tell()
