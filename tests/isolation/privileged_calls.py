"""What tests of the privileged path share: calls as an executor makes them, and what they left behind."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from tests.isolation.agent import Agent
from tests.isolation.cards import Card
from tests.isolation.hierarchies import VIEWS, View, why_impossible
from tests.isolation.installation import ROOT_SCRIPT, SCRIPT
from tests.isolation.lab import FLINK, Lab
from tests.support.script import Result

CARDS = tuple(Card(index) for index in range(4))
ASK = (SCRIPT, "2", "--isolate")
SUDO = ("/usr/bin/sudo", "-n", ROOT_SCRIPT)
STATE = "/run/flink-gpu-discovery/root"
LEDGER = f"{STATE}/ledger"
HOME = "/opt/home"

# The privileged path is the same in every view, so most of its tests take the first one that this machine can show.
ONE_VIEW: tuple[View, ...] = tuple(view for view in VIEWS if not why_impossible(view))[:1] or VIEWS[:1]

_SECONDS = 10.0
_T = TypeVar("_T")


def wait_for(look: Callable[[], _T], what: str, seconds: float = _SECONDS) -> _T:
    """What ``look`` gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"no {what} in {seconds} s"
        time.sleep(0.002)
    return found


def records(lab: Lab) -> list[dict[str, str]]:
    """The ledger's lines as they stand, by the names in its head."""
    path = lab.path(LEDGER)
    if not path.exists():
        return []
    head, *lines, _ = path.read_text(encoding="utf-8").splitlines()
    names = ["uuid", *head.split("\t")[2:]]
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines]


def held(lab: Lab) -> dict[int, str]:
    """The indexes that each owner holds, by its PID."""
    owners: dict[int, list[str]] = {}
    for record in records(lab):
        assert record["state"] == "held"
        owners.setdefault(int(record["pid"]), []).append(record["index"])
    return {pid: ",".join(indexes) for pid, indexes in owners.items()}


def opens(agent: Agent) -> str:
    """The indexes of the GPUs that it may open."""
    told = agent.evaluate(f"[try_open(path) for path in {[card.node for card in CARDS]}]")
    assert set(told) <= {"ENXIO", "EPERM"}
    return "".join(str(index) for index, answer in enumerate(told) if answer == "ENXIO")


def confinements(lab: Lab) -> list[str]:
    """The names of the cgroups in the lab that are called as ours are."""
    return [found.name for folder in lab.cgroup("").folders for found in folder.rglob("flink-gpu-*")]


def unchanged(lab: Lab, *agents: Agent) -> None:
    """Nothing is recorded, no cgroup made, nobody confined."""
    assert (records(lab), confinements(lab)) == ([], [])
    for agent in agents:
        assert opens(agent) == "0123"
        assert "flink-gpu-" not in "".join(agent.membership().values())


def refused(lab: Lab, agent: Agent, done: Result, code: int, *said: str) -> None:
    """The call failed with this code, printed nothing, said this in one line, and changed nothing."""
    assert (done.code, done.out) == (code, ""), done
    assert done.err.count("\n") == 1, done
    assert all(text in done.err for text in said), done
    unchanged(lab, agent)


def home(lab: Lab, uid: int = FLINK) -> Path:
    """A folder of the user's own, as the test reaches it."""
    folder = lab.path(HOME)
    folder.mkdir(exist_ok=True)
    os.chown(folder, uid, uid)
    return folder


def begin(agent: Agent, *words: str, env: Mapping[str, str] | None = None) -> int:
    """Begin a command as its child that writes to ``out`` and ``err`` of ``HOME``; for agents that are killed."""
    return int(
        agent.evaluate(
            "import subprocess\n"
            f"process = subprocess.Popen({list(words)!r}, stdin=subprocess.DEVNULL, stdout=open('{HOME}/out', 'w'),"
            f" stderr=open('{HOME}/err', 'w'), env={{**os.environ, **{dict(env or {})!r}}})\n"
            "result = process.pid"
        )
    )


def in_terminal(agent: Agent, *words: str) -> tuple[int, str]:
    """Run a command as its child in a terminal of its own; exit code, and what the terminal showed."""
    code, text = agent.evaluate(
        "import pty\n"
        f"words = {list(words)!r}\n"
        "pid, master = pty.fork()\n"
        "if pid == 0: os.execv(words[0], words)\n"
        "shown = b''\n"
        "try:\n"
        "    while piece := os.read(master, 4096): shown += piece\n"
        "except OSError: pass\n"
        "os.close(master)\n"
        "result = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown.decode()]"
    )
    return int(code), str(text)


class HeldLock:
    """``with HeldLock(lab): …``: somebody has the ledger's lock, so that whoever wants it waits."""

    def __init__(self, lab: Lab) -> None:
        self._path = lab.path(f"{LEDGER}.lock")
        for folder in (self._path.parent.parent, self._path.parent):
            folder.mkdir(0o755, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def release(self) -> None:
        """Let the next one have it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def __enter__(self) -> HeldLock:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)


def helpers(lab: Lab) -> list[int]:
    """The processes of the root program, its own children left out."""
    found = []
    for pid in lab.pids():
        words = _read(f"/proc/{pid}/cmdline").split("\0")
        if words[0].endswith("/python3") and ROOT_SCRIPT in words and _parent(pid) not in found:
            found.append(pid)
    return [pid for pid in found if _parent(pid) not in found]


def waiting_helper(lab: Lab) -> int:
    """The root program once it has opened the lock that somebody else holds."""

    def look() -> int:
        return next((pid for pid in helpers(lab) if any(link.endswith("ledger.lock") for link in links(pid))), 0)

    return wait_for(look, "helper that waits for the lock")


def links(pid: int) -> list[str]:
    """What a process has open."""
    found = []
    try:
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            found.append(str(entry.readlink()))
    except OSError:
        pass  # it has ended, or closed something
    return found


def ended(lab: Lab, seconds: float = _SECONDS) -> None:
    """Wait until no root program runs."""
    wait_for(lambda: not helpers(lab), "end of the helper", seconds)


@contextmanager
def slowed(pid: int, calls: str, milliseconds: int = 300) -> Iterator[None]:
    """Each of these system calls of a process and its children takes so much longer, from when the block begins."""
    inject = f"inject={calls}:delay_enter={milliseconds * 1000}"
    words = ["strace", "-f", "-q", "-o", "/dev/null", "-e", f"trace={calls}", "-e", inject, "-p", str(pid)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as tracer:
        wait_for(lambda: f"TracerPid:\t{tracer.pid}\n" in _read(f"/proc/{pid}/status"), "tracer")
        time.sleep(0.05)
        yield
        tracer.wait(timeout=20)


def told(result: Result) -> Any:
    """What ``status --json`` tells of each record."""
    assert result.code == 0, result
    return json.loads(result.out)["records"]


def _parent(pid: int) -> int:
    fields = _read(f"/proc/{pid}/stat").rpartition(") ")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""  # it has ended
