"""What tests of confinement share: the calls, the GPUs, and what each owner should be able to open."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from flink_gpu_discovery.isolation import bpf, program
from flink_gpu_discovery.isolation.rules import DeviceNode, Rules
from tests.isolation.agent import Agent
from tests.isolation.cards import Card
from tests.isolation.hierarchies import VIEWS, why_impossible
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, Lab
from tests.support.script import Result

LEDGER = "/run/flink-gpu-discovery/root/ledger"
CONTROL_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm")
# For what is the same in each view: the first that this machine can show.
any_view = pytest.mark.parametrize(
    "view", [next((view for view in VIEWS if not why_impossible(view)), VIEWS[0])], indirect=True
)
OPEN, DENIED = "ENXIO", "EPERM"  # no driver is behind what may be opened

# Four GPUs whose minors are not their indexes, and have gaps.
CARDS = tuple(
    Card(index, minor=minor, drm=(f"card{index + 1}", f"renderD{128 + index}"))
    for index, minor in enumerate((3, 0, 9, 4))
)


def call(lab: Lab, *words: str, backend: str = "nvml") -> Result:
    """The command as root, outside of whatever the owners are in."""
    return lab.run(SCRIPT, *words, "--isolate", "--backend", backend)


def allocate(lab: Lab, owner: Agent, amount: int, *options: str, backend: str = "nvml") -> Result:
    """GPUs for an owner, asked for by root."""
    return call(lab, str(amount), "--owner-pid", str(owner.pid), *options, backend=backend)


def begin_allocate(lab: Lab, owner: Agent, amount: int) -> subprocess.Popen[bytes]:
    """The same without waiting for it; ``printed`` does."""
    words = (SCRIPT, str(amount), "--isolate", "--backend", "nvml", "--id", "index", "--owner-pid", str(owner.pid))
    return lab.start(*words, output=subprocess.PIPE)


def printed(process: subprocess.Popen[bytes]) -> str:
    """The line that a call printed, which must have succeeded."""
    out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (0, b""), err
    return out.decode().strip()


def give_back(lab: Lab, owner: Agent) -> Result:
    """``deallocateAll`` for an owner, asked for by root."""
    return call(lab, "deallocateAll", "--owner-pid", str(owner.pid))


def confined(lab: Lab, amount: int, uid: int = FLINK, **where: Any) -> Agent:
    """An owner that holds so many GPUs."""
    owner = lab.executor(uid, **where)
    done = allocate(lab, owner, amount)
    assert (done.code, done.err) == (0, ""), done
    return owner


def records(lab: Lab) -> list[dict[str, Any]]:
    """What ``status --json`` tells, as root."""
    told = call(lab, "status", "--json")
    assert told.code == 0, told.err
    entries: list[dict[str, Any]] = json.loads(told.out)["records"]
    return entries


def held(lab: Lab) -> dict[int, str]:
    """The indexes that each owner holds, by its PID."""
    owners: dict[int, list[str]] = {}
    for record in records(lab):
        owners.setdefault(record["owner"]["pid"], []).append(record["index"])
    return {pid: ",".join(indexes) for pid, indexes in owners.items()}


def states(lab: Lab) -> dict[int, str]:
    """What the kernel says of each owner's confinement, by its PID."""
    return {record["owner"]["pid"]: record["confinement"] for record in records(lab)}


def answers(agent: Agent, paths: Iterable[str], flags: int = os.O_RDWR, *, thread: bool = False) -> dict[str, str]:
    """What opening each of them gives."""
    source = f"{{path: try_open(path, {flags}) for path in {list(paths)!r}}}"
    told: dict[str, str] = agent.evaluate(source, thread=thread)
    return told


def nodes(*cards: Card) -> tuple[str, ...]:
    """All device nodes of these GPUs."""
    return tuple(node for card in cards for node in (card.node, *card.drm_nodes))


def opens(agent: Agent, cards: Iterable[Card] = CARDS, *, thread: bool = False) -> set[int]:
    """The indexes of the GPUs that it may open; each is wholly open or wholly denied, and control nodes are open."""
    every = tuple(cards)
    told = answers(agent, (*nodes(*every), *CONTROL_NODES, "/dev/null"), thread=thread)
    assert [told[node] for node in CONTROL_NODES] == [OPEN] * len(CONTROL_NODES)
    assert told["/dev/null"] == "opened"
    verdicts = {card.index: {told[node] for node in nodes(card)} for card in every}
    assert all(verdict in ({OPEN}, {DENIED}) for verdict in verdicts.values()), told
    return {index for index, verdict in verdicts.items() if verdict == {OPEN}}


def name(owner: Agent) -> str:
    """What its confinement is called."""
    start_time = Path(f"/proc/{owner.pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()[19]
    return f"flink-gpu-{owner.pid}-{start_time}"


def confinements(lab: Lab) -> list[Path]:
    """The cgroups of the lab under a name of ours, as the test reaches them."""
    return sorted(found for folder in lab.cgroup("").folders for found in folder.rglob("flink-gpu-*"))


def confinement(lab: Lab, owner: Agent) -> Path:
    """The one cgroup of this owner."""
    (found,) = [folder for folder in confinements(lab) if folder.name == name(owner)]
    return found


def untouched(lab: Lab, *agents: Agent) -> None:
    """Nothing is recorded and no cgroup made, and these may open everything, where they were started."""
    assert confinements(lab) == []
    assert held(lab) == {}
    for agent in agents:
        assert opens(agent) == {card.index for card in CARDS}
        assert "flink-gpu-" not in "".join(agent.membership().values())


def denying(*numbers: tuple[int, int]) -> int:
    """A loaded device program that denies these alone."""
    denied = tuple(DeviceNode("", major, minor) for major, minor in numbers)
    return bpf.load(program.encode(program.translate(Rules(classes=frozenset(), allowed=(), denied=denied))))


def attach(folder: Path, loaded: int, flags: int) -> None:
    """Attach a device program to a cgroup as others do: 2 is BPF_F_ALLOW_MULTI, 1 BPF_F_ALLOW_OVERRIDE."""
    _with_cgroup(folder, loaded, 8, flags)


def detach(folder: Path) -> None:
    """Take away the one device program that was attached without flags."""
    _with_cgroup(folder, 0, 9, 0)


def _with_cgroup(folder: Path, loaded: int, command: int, flags: int) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        bpf._bpf(command, bpf._packed("=IIII", descriptor, loaded, 6, flags))
    finally:
        os.close(descriptor)
        if loaded:
            os.close(loaded)
