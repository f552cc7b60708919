"""A scenario played in a folder: it is set up once, put back before every run, and looked at after it."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from types import TracebackType

from flink_gpu_discovery.errors import LedgerDamagedError
from flink_gpu_discovery.ledger import fileformat
from flink_gpu_discovery.models import Record
from tests.crash import strace
from tests.crash.folder import LEDGER, LOCK, NEW, Files, look, make, put_back
from tests.crash.processes import MEMBER_GID, Parent, member, run_alone
from tests.crash.scenarios import BACKEND, Scenario
from tests.crash.strace import Call, Fault
from tests.support.script import Result

_LOG_SECONDS = 5.0


class Stage:
    """``with Stage(scenario, script, folder) as stage``: the owners live that long."""

    def __init__(self, scenario: Scenario, script: Path, folder: Path) -> None:
        self.scenario = scenario
        self._script = script
        self._folder = folder / "state"
        self._log = folder / "strace.log"
        self._owners = ExitStack()
        self._followed: dict[Files, list[str]] = {}

    def __enter__(self) -> Stage:
        with ExitStack() as stack:
            self._caller, other, heir, dead = [stack.enter_context(Parent()) for _ in range(4)]
            heir_pid = stack.enter_context(member()) if self.scenario.shared else heir.pid
            self._pids = {"caller": self._caller.pid, "other": other.pid, "heir": heir_pid, "dead": dead.pid}
            self._set_up()
            dead.kill()
            self._rehearse()
            self._owners = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._owners.close()

    def paths(self) -> tuple[Path, ...]:
        """The ledger's folder and the files in it, those to come too."""
        return (self._folder, *[self._folder / name for name in (LEDGER, LOCK, NEW)])

    def list_calls(self, *, paths: tuple[Path, ...] = (), names: tuple[str, ...] = ()) -> tuple[Call, ...]:
        """The system calls of an undisturbed run."""
        put_back(self._folder, self.before)
        result = self._run(self._traced(strace.selecting(paths, names)))
        assert (result.code, result.out) == (0, self.answer), result
        return strace.calls_in(self._read_log())

    def suffer(self, fault: Fault) -> tuple[Result, Files, str]:
        """What a run with a fault came to and left behind, and why the fault did not come about (empty: it did)."""
        put_back(self._folder, self.before)
        result = self._run(self._traced(fault.options()))
        return result, look(self._folder), fault.missed(self._read_log())

    def reproduction(self, fault: Fault) -> str:
        """A command line for people, to be called on what the scenario finds."""
        words = strace.tracing(Path("/dev/stderr"), fault.options(), as_grandchild=self.scenario.by_parent)
        return shlex.join([*words, *self._call(*self.scenario.words)])

    def is_old(self, files: Files, *, exactly: bool) -> bool:
        """Whether the ledger is what it was, byte for byte, or else with the same records."""
        content = files.ledger()
        if content == self.before.ledger():
            return True
        return not exactly and content is not None and _records(content) == self._old_records

    def tell(self, files: Files) -> str:
        """The ledger in short, for people."""
        content = files.ledger()
        if content is None:
            return "missing"
        names = {pid: name for name, pid in self._pids.items()}
        held = _records(content)
        if held is None:
            return f"no ledger: {content[:200]!r}"
        return ", ".join([f"{uuid[-1]} of {names.get(pid, pid)}" for uuid, pid, _ in held]) or "without a record"

    def is_new(self, files: Files) -> bool:
        """Whether the ledger is what an undisturbed call makes of it, but for the time."""
        return files.timeless().ledger() == self.after.timeless().ledger()

    def follow(self, files: Files, *, old: bool) -> list[str]:
        """What is wrong with the calls that come next. They do the same on the same files, so once is enough."""
        key = files.timeless()
        if key not in self._followed:
            self._followed[key] = self._follow(old=old)
        return self._followed[key]

    def _set_up(self) -> None:
        if self.scenario.shared:
            make(self._folder)
            os.chown(self._folder, -1, MEMBER_GID)
        for words in self.scenario.earlier:
            done = self._run(self._call(*words))
            assert done.code == 0, done
        for name, text in self.scenario.planted:
            make(self._folder)
            (self._folder / name).write_text(self._fill(text))
            (self._folder / name).chmod(0o660)
        self.before = look(self._folder)

    def _rehearse(self) -> None:
        """Play it undisturbed, and remember what comes of it. That also compiles all modules that it imports."""
        done = self._run(self._call(*self.scenario.words))
        assert done.code == 0, done
        assert fnmatchcase(done.out, self._fill(self.scenario.answer)), done
        self.answer = done.out
        self.notes = done.err.splitlines()
        self.after = look(self._folder)
        assert self.after.names() == [LEDGER, LOCK]
        before = self.before.ledger()
        caller = self._pids["caller"]
        self._old_records = _records(before) if before else ()
        if self._old_records is None:  # upstream's file; what is migrated of it is all but the caller's
            self._old_records = tuple(line for line in _records(self.after.ledger()) or () if line[1] != caller)

    def _follow(self, *, old: bool) -> list[str]:
        for_heir, for_caller = self.scenario.from_old if old else self.scenario.from_new
        words = self._call("2", *self.scenario.heir_options, "--owner-pid", "{heir}")
        heir = run_alone(words, as_member=self.scenario.shared)
        left = look(self._folder).names()
        again = self._run(self._call(*self.scenario.words))
        wrong = []
        if (heir.code, heir.out) != (0, for_heir):
            wrong.append(f"the next owner got {heir} instead of {for_heir!r}")
        if again.code != 0 or not fnmatchcase(again.out, self._fill(for_caller)):
            wrong.append(f"the repeated call got {again} instead of {for_caller!r}")
        if left != [LEDGER, LOCK]:
            wrong.append(f"after the next call the folder holds {left}")
        return wrong + self._recorded_wrongly(heir.out)

    def _recorded_wrongly(self, told_heir: str) -> list[str]:
        """Whether the ledger says something else than the heir was told, or lost the other live owner's GPUs."""
        content = look(self._folder).ledger() or b""
        try:
            records = fileformat.parse(content)
        except LedgerDamagedError as error:
            return [f"after the next calls the ledger is damaged: {error}"]
        wrong = []
        held = _held(records, self._pids["heir"])
        if ",".join(held) != told_heir.strip():
            wrong.append(f"the next owner was told {told_heir!r}, recorded are {held}")
        before = _held(fileformat.parse(self.after.ledger() or b""), self._pids["other"])
        after = _held(records, self._pids["other"])
        if before != after:
            wrong.append(f"the other live owner held {before}, now {after}")
        return wrong

    def _call(self, *words: str) -> list[str]:
        filled = [self._fill(word) for word in words]
        return [str(self._script), *filled, *BACKEND, "--ledger", str(self._folder / LEDGER)]

    def _fill(self, text: str) -> str:
        return text.format(ledger=self._folder / LEDGER, **self._pids)

    def _traced(self, options: list[str]) -> list[str]:
        tracing = strace.tracing(self._log, options, as_grandchild=self.scenario.by_parent)
        return tracing + self._call(*self.scenario.words)

    def _read_log(self) -> str:
        """All of it: a strace that is a grandchild may write on for a moment after the program has ended."""
        deadline = time.monotonic() + _LOG_SECONDS
        while True:
            log = self._log.read_text(errors="replace")
            if strace.is_whole(log) or time.monotonic() > deadline:
                return log
            time.sleep(0.005)

    def _run(self, command: Sequence[str]) -> Result:
        return self._caller.run(command) if self.scenario.by_parent else run_alone(command)


def _records(content: bytes | None) -> tuple[tuple[str, int, str], ...] | None:
    """GPU, owner and resource of each record; None if it is no ledger."""
    try:
        records = fileformat.parse(content or b"")
    except LedgerDamagedError:
        return None
    return tuple((record.uuid, record.owner.pid, record.resource) for record in records)


def _held(records: tuple[Record, ...], pid: int) -> list[str]:
    return [record.index for record in records if record.owner.pid == pid]
