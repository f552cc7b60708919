"""What a run with a fault may come to; each function returns what is wrong with it."""

from __future__ import annotations

from tests.crash.folder import LEDGER, LOCK, NEW, Files
from tests.crash.stage import Stage
from tests.crash.strace import Fault
from tests.support.script import Result

_PROGRAM = "flink-gpu-discovery: "
_LARGEST_OUTPUT = 4096
# mkdir(2), rename(2), link(2), unlink(2) and stat(2) name no EINTR, so neither Python nor the program repeats them.
_NEVER_INTERRUPTED = ("mkdir", "rename", "link", "stat")


def of_a_kill(stage: Stage, result: Result, files: Files, *, committed: bool) -> list[str]:
    """A killed call left the old ledger, byte for byte, or once it has ``committed`` the complete new one."""
    wrong = []
    if result.out not in ("", stage.answer):
        wrong.append(f"it printed {result.out!r}")
    if not (stage.is_new(files) if committed else stage.is_old(files, exactly=True)):
        wrong.append(f"the ledger should be the {'new' if committed else 'old'} one, but is: {stage.tell(files)}")
    if not set(files.names()) <= {LEDGER, LOCK, NEW}:
        wrong.append(f"it left {files.names()}")
    return wrong + stage.follow(files, old=not committed)


def of_an_error(stage: Stage, fault: Fault, result: Result, files: Files) -> list[str]:
    """A failing call ends it with nothing changed and a line that says why, or doesn't matter."""
    if result.code == 0:
        wrong = [] if result.out == stage.answer else [f"it printed {result.out!r} instead of {stage.answer!r}"]
        if not stage.is_new(files):
            wrong.append(f"it succeeded, but the ledger is: {stage.tell(files)}")
        return wrong if _unshared(fault) else wrong + stage.follow(files, old=False)
    wrong = _refused_wrongly(stage, fault, result)
    if _done_but_not_told(fault, stage) and stage.is_new(files):
        return wrong + stage.follow(files, old=False)
    if not stage.is_old(files, exactly=False):
        return [*wrong, f"it failed, but the ledger is: {stage.tell(files)}"]
    return wrong + stage.follow(files, old=True)


def _refused_wrongly(stage: Stage, fault: Fault, result: Result) -> list[str]:
    wrong = []
    if result.out:
        wrong.append(f"it printed {result.out!r}")
    lines = result.err.splitlines()
    if lines[:-1] not in ([], stage.notes) or not result.err.startswith(_PROGRAM) or len(result.err) > _LARGEST_OUTPUT:
        wrong.append(f"instead of one line that says why it said {result.err!r}")
    if result.code not in _exit_codes(fault):
        wrong.append(f"exit code {result.code}, saying {result.err.strip()!r}")
    return wrong


def _exit_codes(fault: Fault) -> tuple[int, ...]:
    """Those of the contract: 74 input/output error, 77 permission denied; a call that was interrupted is repeated."""
    if fault.error == "EINTR":
        return (74,) if any(name in fault.call.name for name in _NEVER_INTERRUPTED) else ()
    if fault.error == "EACCES" and not fault.call.text.startswith("write(1,"):
        return (77,)
    return (74,)


def _unshared(fault: Fault) -> bool:
    """Who may not give a file to the folder's group keeps it; then the group's members are refused."""
    return fault.error == "EACCES" and fault.call.name == "fchown"


def _done_but_not_told(fault: Fault, stage: Stage) -> bool:
    """What ``reclaim`` freed stays free, even if its report can't be written."""
    return fault.call.text.startswith("write(1,") and stage.scenario.words[0] == "reclaim"
