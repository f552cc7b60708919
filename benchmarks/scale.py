"""What a coordinated ``allocate`` costs as the host grows: 1, 16, 64, 256 and 1,024 records and GPUs.

    python3 benchmarks/scale.py [--rounds N] [--json]

For each size, three calls that ask for one GPU, on simulated GPUs and a ledger in memory:

- *grant*: so many GPUs are held by 64 owners that live, one more is free and is granted;
- *take over*: all are held, the owner of the last one is dead, and ``--check-dead`` finds that out;
- *repeat*: the owner of the last one asks again, and nothing is written.

All of them run once per round, in random order, so that the ratios hold on a busy machine too: to the smallest size of
the same call, and to a Python that does nothing. Aim: at most 1.5 times the smallest size up to 256.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "discovery"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.executors import PYTHON, SCRIPT, SYSTEM_PATH, compile_package
from benchmarks.measure import (
    FileState,
    Machine,
    MeasureError,
    Timing,
    Variant,
    describe_machine,
    file_system,
    measure,
)
from flink_gpu_discovery.gpus import simulated
from flink_gpu_discovery.host import Host
from flink_gpu_discovery.ledger import fileformat
from flink_gpu_discovery.models import Gpu, Owner, Record
from flink_gpu_discovery.processes import Processes

SIZES = (1, 16, 64, 256, 1024)
CALLS = ("grant", "take over", "repeat")
AIM_RATIO, AIM_SIZE = 1.5, 256
BARE = f"bare {PYTHON} -I -S -c pass"
_OWNERS = 64
_ENVIRONMENT = {"LANG": "C.UTF-8", "PATH": SYSTEM_PATH}


@dataclass(frozen=True)
class Holders:
    """Who holds the GPUs of the ledgers: ``last`` is the owner of the last one, ``dead`` one that has ended."""

    others: tuple[Owner, ...]
    last: Owner
    dead: Owner


@dataclass(frozen=True)
class Results:
    """All that is reported."""

    timings: dict[str, Timing]
    machine: Machine
    file_system: str

    def to_bare(self, label: str) -> float:
        """The median by that of the bare interpreter."""
        return self.timings[label].median / self.timings[BARE].median

    def to_smallest(self, call: str, size: int) -> float:
        """The median by that of the same call with one record."""
        return self.timings[_label(call, size)].median / self.timings[_label(call, SIZES[0])].median

    def quickest_to_smallest(self, call: str, size: int) -> float:
        """The same of the quickest runs, which a busy machine disturbs the least."""
        return self.timings[_label(call, size)].minimum / self.timings[_label(call, SIZES[0])].minimum

    def worst(self) -> float:
        """The largest ratio that the aim is about."""
        return max([self.to_smallest(call, size) for call in CALLS for size in SIZES if size <= AIM_SIZE])


def main() -> int:
    """Print the table; 1 and one line on standard error if something can't be measured."""
    options = _parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # by way of the clean-up
    try:
        compile_package()
        machine = describe_machine(PYTHON)
        with _holders() as holders, tempfile.TemporaryDirectory(prefix="scale-", dir=options.tmpfs) as name:
            folder = Path(name)
            timings = measure(_variants(folder, holders), options.rounds)
            results = Results({timing.label: timing for timing in timings}, machine, file_system(folder))
    except (MeasureError, OSError) as error:
        print(f"scale: {error}", file=sys.stderr)
        return 1
    print(_json(results) if options.json else _table(results))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=60, metavar="N", help="runs of each call (60)")
    add("--json", action="store_true", help="print the figures for programs")
    add("--tmpfs", default="/dev/shm", metavar="DIR", help="a folder in memory, as /run is (/dev/shm)")
    return parser.parse_args()


@contextlib.contextmanager
def _holders() -> Iterator[Holders]:
    """Processes that own GPUs; they end when their pipe closes, with this one, however that ends."""
    processes = Processes(Host())
    with contextlib.ExitStack() as stack:
        living = [stack.enter_context(_process()).pid for _ in range(_OWNERS + 1)]
        others, last = [processes.owner(pid) for pid in living[:-1]], processes.owner(living[-1])
        with _process() as ending:
            dead = processes.owner(ending.pid)
        yield Holders(tuple(others), last, dead)


def _process() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _label(call: str, size: int) -> str:
    return f"{call}, {size} records"


def _variants(folder: Path, holders: Holders) -> Iterator[Variant]:
    yield Variant(BARE, (PYTHON, "-I", "-S", "-c", "pass"), _ENVIRONMENT)
    for size in SIZES:
        for call in CALLS:
            yield _variant(call, size, folder / "ledger", holders)


def _variant(call: str, size: int, ledger: Path, holders: Holders) -> Variant:
    """Standard error is left out: a take-over tells of itself there, and what fails is seen by its status."""
    gpus = size + 1 if call == "grant" else size
    last = {"grant": holders.others[0], "take over": holders.dead, "repeat": holders.last}[call]
    words = [str(SCRIPT), "allocate", "1", "--backend", f"simulated:{gpus}", "--ledger", str(ledger)]
    words += {"grant": [], "take over": ["--check-dead"], "repeat": ["--owner-pid", str(holders.last.pid)]}[call]
    return Variant(
        label=_label(call, size),
        command=("/bin/sh", "-c", 'exec "$@" 2>/dev/null', "sh", *words),
        environment=_ENVIRONMENT,
        expected=f"{gpus - 1}\n",
        file=FileState(ledger, _ledger(size, holders, last)),
        writes=call != "repeat",
    )


def _ledger(size: int, holders: Holders, last: Owner) -> bytes:
    """So many GPUs, the last one held by ``last`` and the others by the others in turn."""
    gpus = simulated.query(f"simulated:{size}").gpus
    others = [_record(gpu, holders.others[place % _OWNERS]) for place, gpu in enumerate(gpus[:-1])]
    return fileformat.render((*others, _record(gpus[-1], last)))


def _record(gpu: Gpu, owner: Owner) -> Record:
    since = "2026-01-02T03:04:05Z"
    return Record(uuid=gpu.uuid, index=gpu.index, pci_address=gpu.pci_address, resource="gpu", owner=owner, since=since)


def _table(results: Results) -> str:
    lines = [
        f"{'milliseconds':26}  {'median':>8}  {'min':>8}  {'p95':>8}  {'to 1':>7}  {'min to 1':>8}  {'to bare':>8}"
    ]
    bare = results.timings[BARE]
    lines.append(f"{'bare Python':26}  {bare.median:8.1f}  {bare.minimum:8.1f}  {bare.p95:8.1f}")
    for call in CALLS:
        for size in SIZES:
            label = _label(call, size)
            timing = results.timings[label]
            times = "  ".join([f"{value:8.1f}" for value in (timing.median, timing.minimum, timing.p95)])
            ratios = (results.to_smallest(call, size), results.quickest_to_smallest(call, size), results.to_bare(label))
            lines.append(f"{label:26}  {times}  {ratios[0]:6.2f}x  {ratios[1]:7.2f}x  {ratios[2]:7.2f}x")
    machine, worst = results.machine, results.worst()
    lines += [
        "",
        f"{len(bare.milliseconds)} rounds on {machine.cpu}, {machine.cores} cores, load {machine.load:.1f} before",
        f"Linux {machine.kernel}, Python {machine.python}, ledger on {results.file_system}",
        f"aim: at most {AIM_RATIO:.2f}x the smallest up to {AIM_SIZE} records",
        f"{'holds' if worst <= AIM_RATIO else 'MISSED'}: {worst:.2f}x",
    ]
    return "\n".join(lines)


def _json(results: Results) -> str:
    rows = [
        {
            "call": call,
            "records": size,
            "median_ms": round(results.timings[_label(call, size)].median, 3),
            "min_ms": round(results.timings[_label(call, size)].minimum, 3),
            "p95_ms": round(results.timings[_label(call, size)].p95, 3),
            "ratio_to_smallest": round(results.to_smallest(call, size), 3),
            "min_ratio_to_smallest": round(results.quickest_to_smallest(call, size), 3),
            "ratio_to_bare": round(results.to_bare(_label(call, size)), 3),
        }
        for call in CALLS
        for size in SIZES
    ]
    worst = results.worst()
    document = {
        "rows": rows,
        "bare_median_ms": round(results.timings[BARE].median, 3),
        "rounds": len(results.timings[BARE].milliseconds),
        "machine": dataclasses.asdict(results.machine),
        "file_system": results.file_system,
        "aim": {"limit": AIM_RATIO, "up_to": AIM_SIZE, "ratio": round(worst, 3), "holds": worst <= AIM_RATIO},
    }
    return json.dumps(document, indent=2)


if __name__ == "__main__":
    sys.exit(main())
