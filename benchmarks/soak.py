"""A soak of our script: operations that are killed at random moments, while the ledger is watched.

    python3 benchmarks/soak.py [--operations N] [--owners N] [--gpus G] [--forks] [--seconds S] [--json]

Eight owners at a time, real processes on 12 simulated GPUs, each call ``allocate`` (the same again, or another amount),
``deallocateAll``, ``reclaim`` and ``status``. At random moments a third of the calls is sent SIGKILL and some SIGTERM,
and one operation in twenty ends with SIGKILL for its owner. ``soaking`` says what is checked all the while, and at the
end. An owner makes many calls, so that nearly all the time goes into the script.

With ``--forks`` a call is a fork of its owner, which has the package loaded, instead of a start of the script: the same
system calls on the ledger, several times as many a second, and the signals fall into these rather than into the start
of Python.

Ends with status 1 if anything was wrong or fewer operations were done than wanted (``--seconds`` was too short).
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
from benchmarks.soak_ledger import Record
from benchmarks.soaking import Plan, Soak


def main() -> int:
    """Soak, and print what was seen."""
    options = _parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # by way of the clean-up
    try:
        compile_package()
        machine = describe_machine(PYTHON)
        with tempfile.TemporaryDirectory(prefix="soak-", dir=options.tmpfs) as folder:
            plan = Plan(
                folder=Path(folder),
                operations=options.operations,
                owners=options.owners,
                gpus=options.gpus,
                forks=options.forks,
                seconds=options.seconds,
                seed=options.seed,
            )
            record = Soak(plan, progress=lambda now: _tell(plan, now)).run()
    except (MeasureError, CrewError, OSError) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1
    print(_json(plan, record, machine) if options.json else _table(plan, record, machine))
    return int(bool(record.faults) or record.operations < plan.operations)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--operations", type=int, default=100_000, metavar="N", help="how many (100000)")
    add("--owners", type=int, default=8, metavar="N", help="owners at a time (8)")
    add("--gpus", type=int, default=12, metavar="G", help="GPUs of the host (12)")
    add("--forks", action="store_true", help="fork the owner for a call instead of starting the script")
    add("--seconds", type=float, default=7200.0, metavar="S", help="end after so long at the latest (7200)")
    add("--seed", type=int, default=0, help="of what is drawn at random (0)")
    add("--json", action="store_true", help="print the figures for programs")
    add("--tmpfs", default="/dev/shm", metavar="DIR", help="a folder in memory, as /run is (/dev/shm)")
    return parser.parse_args()


def _rate(record: Record) -> float:
    return record.operations / record.seconds if record.seconds else 0.0


def _tell(plan: Plan, record: Record) -> None:
    killed = record.counts["calls ended by SIGKILL"] + record.counts["calls ended by SIGTERM"]
    print(
        f"soak: {record.operations} of {plan.operations} operations, {_rate(record):.0f}/s, {killed} calls killed,"
        f" {record.counts['owners killed']} owners killed, {len(record.faults)} faults",
        file=sys.stderr,
        flush=True,
    )


def _table(plan: Plan, record: Record, machine: Machine) -> str:
    lines = [f"{record.operations:9}  operations of {plan.operations}, {'forked' if plan.forks else 'scripts started'}"]
    lines += [f"{number:9}  {name}" for name, number in sorted(record.counts.items())]
    lines += [f"{len(record.faults):9}  faults", *[f"           {fault}" for fault in record.faults]]
    lines += [
        "",
        f"{record.seconds:.0f} s, {_rate(record):.0f} operations a second; {plan.owners} owners, {plan.gpus} GPUs",
        f"{machine.cpu}, {machine.cores} cores, load {machine.load:.1f} before, {os.getloadavg()[0]:.1f} after",
        f"Linux {machine.kernel}, Python {machine.python}",
    ]
    return "\n".join(lines)


def _json(plan: Plan, record: Record, machine: Machine) -> str:
    document = {
        "operations": record.operations,
        "wanted": plan.operations,
        "forks": plan.forks,
        "counts": dict(sorted(record.counts.items())),
        "faults": record.faults,
        "seconds": round(record.seconds, 1),
        "rate": round(_rate(record), 1),
        "machine": dataclasses.asdict(machine),
        "load_after": os.getloadavg()[0],
    }
    return json.dumps(document, indent=2)


if __name__ == "__main__":
    sys.exit(main())
