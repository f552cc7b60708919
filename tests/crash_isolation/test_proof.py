"""The child that proves a confinement may die, fail, lie or hang: then nothing is proven, and nothing granted.

Here strace follows the program into its child, and meets calls that only the child makes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.crash.strace import tracing
from tests.crash_isolation.conftest import PLAYS, Notes, name_of
from tests.crash_isolation.observation import differences
from tests.crash_isolation.scenarios import NODES
from tests.crash_isolation.stage import Stage
from tests.crash_isolation.verdict import tried_again

pytestmark = pytest.mark.timeout(120)
_LOG = Path("/run/strace.log")
_PROVEN = ("first", "second", "repeated")
_CALLS = ("dup2", "setsid", "setgroups", "setresgid", "setresuid")


@dataclass(frozen=True)
class Trouble:
    """What befalls the child: what strace injects, on which paths, and what its log shows when it did."""

    injection: str
    trace: str
    path: str = ""
    more: tuple[str, ...] = ()  # words for the program

    def command(self) -> list[str]:
        chosen = [f"trace={self.injection.partition(':')[0]}", f"inject={self.injection}"]
        paths = ["-P", self.path] if self.path else []
        return tracing(_LOG, ["-f", *[word for choice in chosen for word in ("-e", choice)], *paths])


_DEATHS = [Trouble(f"{name}:signal=KILL:when=1", "+++ killed by SIGKILL +++") for name in _CALLS]
_FAILURES = [Trouble(f"{name}:error=EAGAIN:when=1", "(INJECTED)") for name in _CALLS[1:]]
_LIES = [
    Trouble("access:retval=0", "(INJECTED)", NODES[0]),  # the other owner's: it seems to be open
    Trouble("access:error=EPERM", "(INJECTED)", NODES[1]),  # one's own: it seems to be denied
]
_HANG = Trouble("setgroups:delay_enter=4000000", "setgroups(", more=("--deadline", "2"))


@pytest.mark.parametrize("stage", [play for play in PLAYS if str(play[0]) in _PROVEN], ids=name_of, indirect=True)
def test_without_a_proof_nothing_is_granted(stage: Stage, notes: Notes) -> None:
    for trouble in (*_DEATHS, *_FAILURES, *_LIES, _HANG):
        notes.note(str(trouble), tried_again(lambda it=trouble: _suffer(stage, it)))  # type: ignore[misc]
    notes.tell()


def _suffer(stage: Stage, trouble: Trouble) -> list[str]:
    stage.put_back()
    result = stage.run(trouble.command(), *trouble.more)
    wrong = [] if trouble.trace in stage.log() else [f"strace did not inject it: {stage.log()[-300:]}"]
    told = [line for line in result.err.splitlines() if not line.startswith("strace: ")]
    if result.out or result.code not in (71, 75) or len(told) != 1:
        wrong.append(f"it came to {result}")
    wrong += differences(stage.look(), stage.before)
    if wrong or trouble is _HANG:
        wrong += [f"after the call made again {what}" for what in stage.again() + stage.unproven()]
    return wrong
