"""What confinement costs: inside the root program, and end to end through sudo.

    python3 benchmarks/isolation.py [--rounds N]     as root, on a machine with device cgroups

Every call is the first one of a new task executor that asks for 2 simulated GPUs with device nodes. The coordinated
and the confined call of a root task executor (of the root program itself) differ by the confinement alone; the third is
an unprivileged one's, and goes through sudo and a second interpreter.
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
from tests.isolation.hierarchies import VIEWS, why_impossible
from tests.isolation.installation import ROOT_SCRIPT, SCRIPT, prepare_release
from tests.isolation.lab import FLINK, Lab

COORDINATION = "/run/coordination-ledger"  # elsewhere than the usual one, lest the two modes refuse each other
SIZES = (8, 256)
OWNERS = (0, 32)
TIMED = """
import subprocess, time
start = time.perf_counter()
done = subprocess.run({words!r}, capture_output=True, text=True)
result = [done.returncode, (time.perf_counter() - start) * 1000, done.stdout + done.stderr]
"""


class Bench:
    """One host with ``gpus`` GPUs, of which ``owners`` confined task executors hold one each."""

    def __init__(self, lab: Lab, gpus: int, owners: int) -> None:
        self._lab = lab
        self._backend = f"simulated:{gpus},nodes=/dev/nvidia%d"
        lab.settings(f"[flink-gpu-discovery]\nbackend = {self._backend}\n")
        for index in range(gpus):
            lab.mknod(f"/dev/nvidia{index}", 195, index)
        self._owners = [lab.executor() for _ in range(owners)]
        for owner in self._owners:
            self._must(lab.run(SCRIPT, "1", "--isolate", "--owner-pid", str(owner.pid)).code)

    def time(self, words: tuple[str, ...], uid: int) -> float:
        """Milliseconds of one call by a new task executor."""
        executor = self._lab.executor(uid=uid)
        code, milliseconds, said = executor.evaluate(TIMED.format(words=words))
        executor.kill()
        if code:
            raise SystemExit(f"{' '.join(words)}: exit {code}: {said}")
        for kind in (("--ledger", COORDINATION), ("--isolate",)):
            self._must(self._lab.run(SCRIPT, "reclaim", *kind).code)
        return float(milliseconds)

    def end(self) -> None:
        """Let the owners go."""
        for owner in self._owners:
            owner.kill()
        self._must(self._lab.run(SCRIPT, "reclaim", "--isolate").code)

    @staticmethod
    def _must(code: int) -> None:
        if code:
            raise SystemExit(f"exit {code}")


VARIANTS = {
    "coordinated, root": ((SCRIPT, "2", "--ledger", COORDINATION), 0),
    "confined, root": ((ROOT_SCRIPT, "allocate", "2"), 0),
    "confined, through sudo": ((SCRIPT, "2", "--isolate"), FLINK),
}


def measure(lab: Lab, gpus: int, owners: int, rounds: int) -> dict[str, float]:
    """Median milliseconds of each variant, in rounds of one call each."""
    bench = Bench(lab, gpus, owners)
    taken: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for turn in range(rounds + 1):
        for name, (words, uid) in VARIANTS.items():
            milliseconds = bench.time(words, uid)
            if turn:  # the first one fills the caches
                taken[name].append(milliseconds)
    bench.end()
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    machine = describe_machine("/usr/bin/python3")
    print(f"{machine.cpu}, {machine.cores} cores, Linux {machine.kernel}, Python {machine.python}", end="")
    print(f", load {machine.load:.1f}")
    print(f"medians of {rounds} rounds, milliseconds\n")
    print(f"{'view':8}{'GPUs':>6}{'owners':>8}{'coordinated':>13}{'confined':>10}{'adds':>7}{'sudo':>8}{'ratio':>7}")
    with tempfile.TemporaryDirectory(prefix="flink-gpu-bench-") as folder:
        release = prepare_release(Path(folder))
        for view in VIEWS:
            reason = why_impossible(view)
            if reason:
                print(f"{view:8}{reason}")
                continue
            for gpus, owners in [(gpus, owners) for gpus in SIZES for owners in OWNERS if owners < gpus]:
                with Lab(Path(folder), view, release=release) as lab:
                    lab.install()
                    times = measure(lab, gpus, owners, rounds)
                plain, confined, sudo = times.values()
                row = f"{plain:13.1f}{confined:10.1f}{confined - plain:7.1f}{sudo:8.1f}{sudo / plain:7.2f}"
                print(f"{view:8}{gpus:6}{owners:8}{row}", flush=True)


if __name__ == "__main__":
    main()
