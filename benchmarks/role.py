"""What a run of the role costs: seconds and tasks, beside a play that only gathers facts.

    python3 benchmarks/role.py [--rounds N] [--suite SUITE] [--layout LAYOUT]     as root, where hosts can be booted

One host, fresh at first. The runs that change nothing are repeated in rounds with the play that gathers facts, and
medians are shown; the first run can't be repeated.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "discovery"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measure import describe_machine
from tests.booted.engine import CannotBootError
from tests.booted.host import BootedHost
from tests.booted.installation import GPUS, NODES
from tests.role.collection import install_collection
from tests.role.outcome import Outcome
from tests.role.playing import PLAYBOOKS, ControlNode

UNIT = "flink-taskmanager.service"
VARIABLES = {
    "flink_gpu_isolation": "cgroup",
    "flink_gpu_create_user": True,
    "flink_gpu_amount": 2,
    "flink_gpu_backend": f"simulated:{len(GPUS)},nodes=/dev/nvidia%d",
    "flink_gpu_taskmanager_units": [UNIT],
}


class Bench:
    """A fresh host with GPUs' device nodes and a TaskManager's unit, and what is played on it."""

    def __init__(self, control: ControlNode, host: BootedHost) -> None:
        self._control = control
        self._host = host
        for index, node in enumerate(NODES):
            host.succeed("mknod", "--mode=0666", node, "c", "195", str(index))
        host.unit(UNIT, "[Service]\nUser=flink\nExecStart=/bin/sleep infinity\n")

    def facts(self) -> Outcome:
        """A play that does nothing else."""
        return self._control.play(PLAYBOOKS / "facts.yml", [self._host]).must_succeed()

    def role(self, *, check: bool = False) -> Outcome:
        """A run of the role."""
        playbook = PLAYBOOKS / "role.yml"
        return self._control.play(playbook, [self._host], check=check, variables=VARIABLES, seconds=300).must_succeed()


def measure(bench: Bench, rounds: int) -> dict[str, list[Outcome]]:
    """The outcomes of each kind of run; the first play of all fills the caches and doesn't count."""
    bench.facts()
    runs = {"facts": [bench.facts()], "first run": [bench.role()], "no change": [], "check": []}
    for _ in range(rounds):
        runs["facts"].append(bench.facts())
        runs["no change"].append(bench.role())
        runs["check"].append(bench.role(check=True))
    disturbed = [name for outcome in (*runs["no change"], *runs["check"]) for name in outcome.changed]
    if disturbed:
        raise SystemExit(f"a run that should change nothing changed: {', '.join(disturbed)}")
    return runs


def show(runs: dict[str, list[Outcome]]) -> None:
    """The table; ``slowest`` is the task that takes most of a run's time."""
    seconds = {name: statistics.median(outcome.seconds for outcome in outcomes) for name, outcomes in runs.items()}
    print(f"{'run':12}{'tasks':>7}{'changed':>9}{'seconds':>9}{'x facts':>9}   slowest task")
    for name, outcomes in runs.items():
        last = outcomes[-1]
        slowest = max(last.results, key=lambda result: result.seconds)
        figures = f"{last.tasks:7}{len(last.changed):9}{seconds[name]:9.2f}{seconds[name] / seconds['facts']:9.1f}"
        print(f"{name:12}{figures}   {slowest.task}, {slowest.seconds:.2f} s")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--suite", default="bookworm")
    parser.add_argument("--layout", choices=("v2", "hybrid"), default="v2")
    given = parser.parse_args()
    machine = describe_machine("/usr/bin/python3")
    print(f"{machine.cpu}, {machine.cores} cores, Linux {machine.kernel}, load {machine.load:.1f}")
    print(f"{given.suite}, cgroup {given.layout}; medians of {given.rounds} rounds\n")
    with tempfile.TemporaryDirectory(prefix="flink-gpu-bench-") as folder:
        control = ControlNode(Path(folder) / "control", install_collection(Path(folder)))
        try:
            host = BootedHost(given.layout, suite=given.suite)
        except CannotBootError as error:
            raise SystemExit(str(error)) from error
        with host:
            show(measure(Bench(control, host), given.rounds))


if __name__ == "__main__":
    main()
