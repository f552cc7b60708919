"""What a run with a fault may come to; each function returns what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable

from tests.crash_isolation.observation import Observation, differences
from tests.crash_isolation.stage import Stage
from tests.crash_isolation.strikes import Strike
from tests.support.script import Result

_PROGRAM = "flink-gpu-discovery: "
_LARGEST_OUTPUT = 4096
_ENOUGH = 2  # times that something is followed up, if it goes wrong
_REFUSALS = (71, 74, 75, 77)


class Judge:
    """Remembers, for one stage, what has been followed up: calls do the same on what looks the same."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._followed: dict[Observation, int] = {}

    def of_a_kill(self, strike: Strike, result: Result, seen: Observation, *, committed: bool | None) -> list[str]:
        """Killed, it left what was before, or a half that the next call undoes, or once ``committed`` all of it."""
        stage = self._stage
        done = seen.records == stage.after.records if committed is None else committed
        wrong = [*seen.trespasses()]
        if result.out and not (stage.is_answer(result.out) and seen.records == stage.after.records):
            wrong.append(f"it printed {result.out!r}, when the records were {seen.records}")
        may_be = [stage.after.records] if done else [stage.before.records, stage.interim or stage.before.records]
        if seen.records not in may_be:
            wrong.append(f"the records are {seen.records} instead of one of {may_be}")
        lost = stage.scenario.leftover is not None and not done and seen.records == stage.interim
        return wrong + self._reclaimed(done=done, lost=lost) + self._follow(strike, seen)

    def of_an_error(self, strike: Strike, result: Result, seen: Observation) -> list[str]:
        """Refused, it left all as before, with a line that says why; or the error did not matter."""
        stage = self._stage
        done = result.code == 0
        wrong = [*seen.trespasses()]
        if not done:
            wrong += _told_wrongly(result)
        elif not stage.is_answer(result.out) and not stage.is_reclaim:
            wrong.append(f"it printed {result.out!r}")
        if stage.is_reclaim:
            wrong += self._freed_wrongly(seen)
        elif done or stage.scenario.words[0] != "deallocateAll":  # refused, it may leave less open than is held
            wanted = stage.after if done else stage.before
            wrong += differences(seen.without_strays(), wanted.without_strays())
        return wrong + self._reclaimed(done=done) + self._follow(strike, seen)

    def _freed_wrongly(self, seen: Observation) -> list[str]:
        """What a ``reclaim`` can't tell of, it keeps."""
        least, left, most = [{*(one.records or ())} for one in (self._stage.after, seen, self._stage.before)]
        return [] if least <= left <= most else [f"it left {seen.records}"]

    def _reclaimed(self, *, done: bool, lost: bool = False) -> list[str]:
        """A ``reclaim`` leaves no half: all is as if the call had not been made, or as if it had.

        ``lost``: it has taken over what a dead owner's processes use yet, of which the ledger tells no more. Then
        these can't open it either, and the GPU is free.
        """
        stage = self._stage
        called = stage.reclaim()
        wanted = stage.after_reclaimed if done else stage.before_reclaimed
        seen = stage.look()
        wrong = [*seen.trespasses()] if called.code == 0 else [f"reclaim came to {called}"]
        if not lost:
            wrong += differences(seen, wanted)
        return [f"after reclaim {what}" for what in wrong]

    def _follow(self, strike: Strike, seen: Observation) -> list[str]:
        """The call made again: now that a ``reclaim`` was made, and in the place of it."""
        stage = self._stage
        if self._followed.get(seen, 0) >= _ENOUGH:
            return []
        wrong = stage.again() + stage.unproven()
        if seen not in (stage.before, stage.after):
            stage.suffer(strike)
            wrong += [f"without reclaim: {what}" for what in stage.again() + stage.unproven()]
        self._followed[seen] = self._followed.get(seen, 0) + 1 if wrong else _ENOUGH
        return wrong


def tried_again(trial: Callable[[], list[str]]) -> list[str]:
    """What goes wrong at a second try, too.

    Other test runs on this machine share its cgroups: a ``reclaim`` of theirs may remove one that is empty yet.
    """
    return trial() if trial() else []


def _told_wrongly(result: Result) -> list[str]:
    wrong = [f"it printed {result.out!r}"] if result.out else []
    if result.err.count("\n") != 1 or not result.err.startswith(_PROGRAM) or len(result.err) > _LARGEST_OUTPUT:
        wrong.append(f"instead of one line that says why it said {result.err!r}")
    if result.code not in _REFUSALS:
        wrong.append(f"exit code {result.code}, saying {result.err.strip()!r}")
    return wrong
