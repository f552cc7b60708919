"""Task executors that come and go: our script and Flink's own, side by side in one run.

    python3 benchmarks/churn.py [--seconds S] [--executors N] [--gpus-each K] [--gpus G] [--json]

N task executors of K GPUs each churn on G GPUs, in turns of 10 s for ours and upstream's until each had S seconds. A
task executor asks for its GPUs, holds them for a random while (up to 0.2 s) and is ended by SIGKILL; every fifth one is
killed within 0.5 s of asking instead, so mostly while it asks. Its successor starts as soon as its death was observed.
Both scripts take over from dead owners, and see the GPUs through one stand-in for nvidia-smi that answers at once.

Reported of each: calls that were granted; *double* grants, which gave out a GPU that a live owner held, by the rule of
``observer``, which can't count one that is none; calls *refused*, and how many of these although enough GPUs were free
all the while; calls that failed otherwise or gave a wrong number of GPUs; executors killed while asking; median, 99th
percentile and maximum of the milliseconds of those calls that were answered, by the nearest rank. Flink gives a call
up after 10 s: *late* ones are counted.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.executors import PYTHON, CrewError, compile_package
from benchmarks.measure import Machine, MeasureError, describe_machine
from benchmarks.race import Churn, Contender, Tally, ours, race, upstreams
from tools.fetch_flink import FetchError, fetch

FLINK_VERSION = "2.3.0"


def main() -> int:
    """Print the table; 1 if ours gave a GPU out twice, refused though enough were free, or failed."""
    options = _parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # by way of the clean-up
    churn = Churn(options.executors, options.gpus_each, options.gpus)
    try:
        compile_package()
        machine = describe_machine(PYTHON)
        with tempfile.TemporaryDirectory(prefix="churn-", dir=options.tmpfs) as name:
            folder = Path(name)
            contenders, missing = _contenders(folder)
            tallies = race(churn, contenders, folder=folder / "bin", seconds=options.seconds, seed=options.seed)
    except (MeasureError, CrewError, OSError) as error:
        print(f"churn: {error}", file=sys.stderr)
        return 1
    rows = [_row(one.label, tally) for one, tally in zip(contenders, tallies, strict=True)]
    print(_json(churn, rows, machine, missing) if options.json else _table(churn, rows, machine, missing))
    mine = tallies[0]
    for fault in mine.faults[:8]:
        print(f"churn: ours: {fault}", file=sys.stderr)
    return int(bool(mine.double or mine.refused_though_free or mine.failed or mine.late))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--seconds", type=float, default=20.0, metavar="S", help="how long each script's executors churn (20)")
    add("--executors", type=int, default=8, metavar="N", help="task executors at a time (8)")
    add("--gpus-each", type=int, default=2, metavar="K", help="GPUs of each (2)")
    add("--gpus", type=int, default=16, metavar="G", help="GPUs of the host (16)")
    add("--seed", type=int, default=0, help="of the random times (0)")
    add("--json", action="store_true", help="print the figures for programs")
    add("--tmpfs", default="/dev/shm", metavar="DIR", help="a folder in memory, as /run is (/dev/shm)")
    return parser.parse_args()


def _contenders(folder: Path) -> tuple[tuple[Contender, ...], str]:
    """Ours and, where Flink can be fetched, upstream's; else the reason why not."""
    mine = ours(folder / "ours" / "ledger")
    try:
        return (mine, upstreams(fetch(FLINK_VERSION), folder / "coordination")), ""
    except (FetchError, OSError) as error:
        return (mine,), str(error)


def _row(label: str, tally: Tally) -> dict[str, object]:
    row: dict[str, object] = {"script": label}
    row |= {name: value for name, value in vars(tally).items() if isinstance(value, int)}
    for name, share in (("p50_ms", 0.5), ("p99_ms", 0.99), ("max_ms", 1.0)):
        value = tally.percentile(share)
        row[name] = None if value is None else round(value, 1)
    return row


def _table(churn: Churn, rows: list[dict[str, object]], machine: Machine, missing: str) -> str:
    columns = list(rows[0])
    lines = ["  ".join(columns)]
    for row in rows:
        lines.append("  ".join([f"{row[name]!s:>{len(name)}}" for name in columns]))
    if missing:
        lines.append(f"upstream: skipped: {missing}")
    lines += [
        "",
        f"{churn.executors} task executors of {churn.gpus_each} GPUs on {churn.gpus} GPUs",
        f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f} before, {os.getloadavg()[0]:.1f} after",
        f"Linux {machine.kernel}, Python {machine.python}",
    ]
    return "\n".join(lines)


def _json(churn: Churn, rows: list[dict[str, object]], machine: Machine, missing: str) -> str:
    document = {
        "churn": dataclasses.asdict(churn),
        "rows": rows,
        "upstream_skipped": missing or None,
        "machine": dataclasses.asdict(machine),
        "load_after": os.getloadavg()[0],
    }
    return json.dumps(document, indent=2)


if __name__ == "__main__":
    sys.exit(main())
