"""A scenario played on a host: set up once, put back before every run, and looked at after it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.crash.strace import Call
from tests.crash_isolation import strikes
from tests.crash_isolation.host import Host
from tests.crash_isolation.observation import Observation, Process, differences
from tests.crash_isolation.scenarios import ALL, BACKEND, OTHERS, Scenario
from tests.crash_isolation.strikes import Strike
from tests.isolation.installation import SCRIPT
from tests.support.script import Result

_LOG = "/run/strace.log"


class Stage:
    """``before`` and ``after`` are what an undisturbed call starts from and comes to.

    ``before_reclaimed`` and ``after_reclaimed`` are what a ``reclaim`` makes of them.
    """

    def __init__(self, scenario: Scenario, host: Host, log: Path) -> None:
        self.scenario = scenario
        self._host = host
        self._log = log  # the file at _LOG, as this process reaches it
        self._build()
        self.before = self.look()
        self._check(self.before, scenario.before, 0)
        self.before_reclaimed = self._reclaimed()
        self._build()
        self._list()  # so that all is compiled and cached
        self._build()
        self.calls = self._list()
        self.after = host.look()
        self._check(self.after, scenario.after, 1)
        self.after_reclaimed = self._reclaimed()
        self.interim = self.after.interim(self.before, scenario.interim) if scenario.interim else None
        self._build()

    def suffer(self, strike: Strike) -> tuple[Result, Observation, str]:
        """What a run with a fault came to and left behind, and why the fault did not come about (empty: it did)."""
        self.put_back()
        result = self.run(strikes.command(Path(_LOG), strike))
        return result, self._host.look(), strike.missed(self._log.read_text(errors="replace"))

    def run(self, before: Sequence[str] = (), *more: str) -> Result:
        """The scenario's call with ``more`` words; ``before`` are words before the program's."""
        return self._host.call(*self._words(), *more, before=before)

    def look(self) -> Observation:
        """What there is to see now."""
        return self._host.look()

    def log(self) -> str:
        """What strace has written last."""
        return self._log.read_text(errors="replace")

    def reclaim(self) -> Result:
        """What a hook or an operator calls next."""
        return self._host.call("reclaim")

    def again(self) -> list[str]:
        """What is wrong with the same call made again, after whatever; it must come to the same as undisturbed."""
        done = self.run()
        if done.code != 0 or not (self.is_answer(done.out) or self.is_reclaim):
            return [f"the call made again came to {done}"]
        wrong = [*self.look().trespasses()]
        self.reclaim()
        wrong += differences(self.look(), self.after_reclaimed)
        return [f"after the call made again {what}" for what in wrong]

    @property
    def is_reclaim(self) -> bool:
        """Whether the call is nobody's own."""
        return self.scenario.words == ("reclaim",)

    def is_answer(self, text: str) -> bool:
        """Whether it is what an undisturbed call prints."""
        return fnmatchcase(text, self.scenario.answer)

    def unproven(self) -> list[str]:
        """The confinements of live owners that the program itself finds not to be in force."""
        status = self._host.call("status", "--json")
        records = json.loads(status.out)["records"] if status.code == 0 else []
        alive = [record for record in records if record["owner"]["liveness"] == "alive"]
        odd = {record["confinement"] for record in alive} - {"in force"}
        return [f"confinements are {odd}, exit code {status.code}"] if odd or status.code != 0 else []

    def put_back(self) -> None:
        """Let everything be as before the call, with new owners where the old ones can't be used again."""
        if self._as_before():
            return
        if len(self.look().processes) == len(self.before.processes):
            self._host.put_back(self._ledger, self._confinements)
            if self._as_before():
                return
        self._build()
        assert self.look() == self.before

    def tell(self, strike: Strike) -> str:
        """What is done to which call, with a command line for people."""
        words = [*strikes.command(Path("/dev/stderr"), strike), SCRIPT, *self._words(), *BACKEND]
        return f"{strike.error or f'SIG{strike.signal}'} at {strike.call.text}\n    {shlex.join(words)}"

    def _words(self) -> tuple[str, ...]:
        words = self.scenario.words
        return words if words[0] == "reclaim" else (*words, "--owner-pid", self._host.pid("caller"))

    def _list(self) -> tuple[Call, ...]:
        done = self.run(strikes.command(Path(_LOG), None))
        assert done.code == 0, done
        assert self.is_answer(done.out), done
        return strikes.calls_in(self.log())

    def _build(self, tries: int = 5) -> None:
        """Start the owners, call what was called earlier, and end the one that is to be dead.

        Several ``tries``: a ``reclaim`` of another test run on this machine may take away a cgroup that is empty yet.
        """
        host, scenario = self._host, self.scenario
        earlier = (OTHERS, *scenario.earlier)
        host.start(["caller", *[role for role, _ in earlier if role != "caller"]])
        host.add_child("child", "caller")
        if scenario.leftover:
            host.add_child("leftover", "dead")
        for role, words in earlier:
            done = host.call(*words, "--owner-pid", host.pid(role))
            if done.code != 0 and tries > 1:
                self._build(tries - 1)
                return
            assert done.code == 0, done
        if "dead" in host.agents:
            host.kill("dead")
        self._ledger = host.ledger().read_bytes()
        self._confinements = host.confinements()

    def _as_before(self) -> bool:
        return (
            not self._host.shelters()
            and self.look() == self.before
            and self._host.ledger().read_bytes() == self._ledger
        )

    def _reclaimed(self) -> Observation:
        done = self.reclaim()
        assert done.code == 0, done
        return self.look()

    def _check(self, seen: Observation, opens: str, which: int) -> None:
        """What the scenario says that everybody can open."""
        confined = "/caller" if opens != ALL else ""
        wanted = {"caller": (f"caller{confined}", opens), "child": (f"caller{confined}", opens), "other": ("", "0")}
        if self.scenario.leftover:
            wanted["leftover"] = ("", self.scenario.leftover[which])
        for process in seen.processes:
            cgroup, gpus = wanted[process.role]
            assert process == Process(process.role, cgroup or process.cgroup, gpus), seen
        assert not [*seen.trespasses()], seen
        assert not seen.strays, seen
