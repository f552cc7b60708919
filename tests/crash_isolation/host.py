"""A lab with its own top of the cgroup tree, and owners in roles that can be started anew."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from flink_gpu_discovery.errors import LedgerDamagedError
from flink_gpu_discovery.ledger import fileformat
from flink_gpu_discovery.models import Record
from tests.crash_isolation.observation import Line, Observation, Process
from tests.crash_isolation.scenarios import BACKEND, NODES
from tests.isolation.agent import Agent
from tests.isolation.cards import NVIDIA_MAJOR
from tests.isolation.cgroup import Cgroup
from tests.isolation.hierarchies import CGROUPS, View, of_this_machine
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import Lab
from tests.support.script import Result

_FOLDER = "/run/flink-gpu-discovery/root"
_OWN_TOP = (
    "mkdir -p /run/tree; mount -n --bind {top} /run/tree; umount -n -l {point}; mount -n --move /run/tree {point}"
)
_OURS = "flink-gpu-"
_SHELTER = "flink-gpu-discovery"
_SECONDS = 10.0
_TRY = f"[try_open(node) for node in {list(NODES)!r}]"
_DENIED, _OPENED = "EPERM", "ENXIO"


class Host:
    """Owners by role. Only the lab's cgroups are seen in it, so the ``reclaim`` of another lab can't come between."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self._folder = lab.path(_FOLDER)
        self.agents: dict[str, Agent] = {}
        self._pids: dict[str, str] = {}
        self._homes: dict[str, Cgroup] = {}
        machine = of_this_machine().seen_in(lab.view)
        for tree in (machine.v1, machine.v2):
            if tree is not None:
                point = CGROUPS if lab.view == "v2" else str(tree)
                self._run("sh", "-ec", _OWN_TOP.format(top=f"{point}/{lab.name}", point=point))
        for minor, node in enumerate(NODES):
            lab.mknod(node, NVIDIA_MAJOR, minor)

    # Owners

    def start(self, roles: Iterable[str]) -> None:
        """End those of before, and begin anew without a ledger."""
        self.clear()
        for role in roles:
            self._homes[role] = home = self._lab.cgroup(role)
            self._add(role, self._lab.executor(cgroup=home))

    def add_child(self, role: str, parent: str) -> None:
        """A child of an owner."""
        self._add(role, self.agents[parent].child())

    def kill(self, role: str) -> None:
        """End an owner; its record and its cgroup stay."""
        self.agents.pop(role).kill()

    def clear(self) -> None:
        """End all owners, and forget what they left."""
        for role in reversed(list(self.agents)):
            self.kill(role)
        for path in self._folder.glob("*"):
            path.unlink()
        for folder in (*self.confinements(), *self.shelters()):
            _remove(folder)
        self._pids.clear()

    def pid(self, role: str) -> str:
        """Of an owner, also of one that has ended."""
        return self._pids[role]

    # Calls

    def call(self, *words: str, before: Sequence[str] = ()) -> Result:
        """The program as root; returns once no process of it is left. ``before`` are words before its own."""
        result = self._lab.run(*before, SCRIPT, *words, *BACKEND)
        known = {agent.pid for agent in self.agents.values()}
        end = time.monotonic() + _SECONDS
        while left := self._lab.pids() - known:
            assert time.monotonic() < end, f"processes {left} were left behind by {words}"
            time.sleep(0.002)
        return result

    def ledger(self) -> Path:
        """The ledger's file, as this process reaches it."""
        return self._folder / "ledger"

    def put_back(self, content: bytes, confinements: Iterable[Path]) -> None:
        """The ledger, and cgroups that are empty."""
        self.ledger().write_bytes(content)
        self.ledger().chmod(0o644)
        self.ledger().with_suffix(".new").unlink(missing_ok=True)
        for folder in confinements:
            folder.mkdir(exist_ok=True)
        for folder in self.shelters():
            _remove(folder)

    def confinements(self) -> list[Path]:
        """The folders of all cgroups under names of ours."""
        folders = [folder for home in self._homes.values() for folder in home.folders]
        return sorted(path for folder in folders for path in folder.glob(f"**/{_OURS}*"))

    def shelters(self) -> set[Path]:
        """Where the program goes if the top of the tree takes it not; stays, and changes what a later call finds."""
        tops = {folder.parent for home in self._homes.values() for folder in home.folders}
        return {top / _SHELTER for top in tops if (top / _SHELTER).exists()}

    def look(self) -> Observation:
        """What there is to see now."""
        names = [path.name for path in self._folder.glob("*")] if self._folder.exists() else []
        return Observation(
            records=self._records(),
            confinements=tuple([self._role(path.name) for path in self.confinements()]),
            processes=tuple([self._process(role, agent) for role, agent in self.agents.items()]),
            strays=tuple(sorted({*names} - {"ledger", "ledger.lock"})),
        )

    def _records(self) -> tuple[Line, ...] | None:
        try:
            content = self.ledger().read_bytes()
        except FileNotFoundError:
            return None
        try:
            return tuple([self._line(record) for record in fileformat.parse(content)])
        except LedgerDamagedError as error:
            return (("?", "?", "?", str(error)),)

    def _line(self, record: Record) -> Line:
        role = self._role(f"{_OURS}{record.owner.pid}-{record.owner.start_time}")
        state = record.state if self._role(Path(record.cgroup).name) == role else f"{record.state} elsewhere"
        return record.index, record.resource, role, state

    def _process(self, role: str, agent: Agent) -> Process:
        answers = agent.evaluate(_TRY)
        odd = [answer for answer in answers if answer not in (_DENIED, _OPENED)]
        opens = "".join([str(place) for place, answer in enumerate(answers) if answer == _OPENED])
        return Process(role, self._cgroup(agent), f"{opens}{odd or ''}")

    def _cgroup(self, agent: Agent) -> str:
        """Where it is, from the lab's top in the hierarchy where it is deepest."""
        paths = [path.partition(f"/{self._lab.name}/")[2] for path in agent.membership().values()]
        home, _, below = max(paths, key=len).partition("/")
        return f"{home}/{self._role(below)}" if below else home

    def _role(self, name: str) -> str:
        """Whose name a cgroup has."""
        pid = name.removeprefix(_OURS).partition("-")[0]
        return next((role for role, known in self._pids.items() if known == pid), name)

    def _add(self, role: str, agent: Agent) -> None:
        self.agents[role] = agent
        self._pids[role] = str(agent.pid)

    def _run(self, *words: str) -> None:
        done = self._lab.run(*words)
        assert done.code == 0, done


def new_lab(folder: Path, view: View, release: Path) -> Lab:
    """A lab with the package in it."""
    lab = Lab(folder, view, release=release)
    lab.install()
    return lab


def _remove(folder: Path) -> None:
    """A process that was killed leaves its cgroup a moment later."""
    end = time.monotonic() + _SECONDS
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            assert time.monotonic() < end, f"{folder} stays busy"
            time.sleep(0.002)
        else:
            return
