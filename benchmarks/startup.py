"""What a call of the discovery script costs, beside bare Python and beside Flink's own script.

    python3 benchmarks/startup.py [--rounds N] [--json]     the table
    python3 benchmarks/startup.py --imports [BACKEND]       what the coordinated call imports

Every variant asks for 2 GPUs. Ours runs from this checkout, compiled, by the interpreter that its first line
names. Flink's script and ours meet over one stand-in for nvidia-smi that answers at once, so that the scripts
are compared and no driver is: a real one adds the same to both.
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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measure import (
    FileState,
    Machine,
    MeasureError,
    Timing,
    Variant,
    answer,
    describe_machine,
    file_system,
    import_times,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "discovery"
SCRIPT = str(SOURCE / "bin" / "flink-gpu-discovery")
PYTHON = "/usr/bin/python3"
FLINK_VERSION = "2.3.0"
UPSTREAM_SCRIPT = Path("plugins", "external-resource-gpu", "nvidia-gpu-discovery.sh")
OWNERS = 8
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"

FIRST_TWO, LAST_TWO = "0,1\n", "254,255\n"
HELD = "coordinated, 254 of 256 GPUs held, tmpfs"
BARE = f"bare {PYTHON} -I -S -c pass"
AIM = "ours: coordinated, 8 GPUs, tmpfs"
AIM_RATIO = 2.0


@dataclass(frozen=True)
class Scene:
    """What the variants work on: folders on both kinds of file system, and processes that may own GPUs."""

    tmpfs: Path
    disk: Path
    owners: tuple[int, ...]

    @property
    def ledger(self) -> Path:
        """The ledger of every variant that doesn't say disk; its lock file stays, as on a real host."""
        return self.tmpfs / "ledger"

    def environment(self, gpus: int) -> dict[str, str]:
        """The environment of every call; ``nvidia-smi`` in its PATH shows so many GPUs."""
        return {"LANG": "C.UTF-8", "PATH": f"{self.disk / f'smi-{gpus}'}:{SYSTEM_PATH}"}


@dataclass(frozen=True)
class Results:
    """All that is reported; ``missing`` says why upstream's rows are, empty if they are there."""

    timings: tuple[Timing, ...]
    machine: Machine
    tmpfs: str
    disk: str
    missing: str

    @property
    def rounds(self) -> int:
        """How often each variant ran."""
        return len(self.timings[0].milliseconds)

    def ratio(self, label: str) -> float:
        """The median of a variant by that of the bare interpreter."""
        medians = {timing.label: timing.median for timing in self.timings}
        return medians[label] / medians[BARE]


def main() -> int:
    """Print the table or the imports; 1 and one line on standard error if something can't be measured."""
    options = _parse()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))  # by way of the clean-up
    try:
        answer((PYTHON, "-I", "-m", "compileall", "-q", str(SOURCE / "flink_gpu_discovery")), {})
        with _scene(options.tmpfs, options.disk) as scene:
            if options.imports:
                _print_imports(scene, options.imports, options.rounds)
            else:
                results = _measure_all(scene, options.rounds)
                print(_json(results) if options.json else _table(results))
    except (MeasureError, OSError) as error:
        print(f"startup: {error}", file=sys.stderr)
        return 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=_positive, default=40, metavar="N", help="runs of each variant (40)")
    add("--json", action="store_true", help="print the figures for programs")
    add(
        "--imports",
        nargs="?",
        const="simulated:8",
        choices=("simulated:8", "nvidia-smi"),
        help="print what the coordinated call imports instead, by default with simulated:8",
    )
    add("--tmpfs", default="/dev/shm", metavar="DIR", help="a folder in memory, as /run is (/dev/shm)")
    add("--disk", default="/var/tmp", metavar="DIR", help="a folder on a disk (/var/tmp)")
    return parser.parse_args()


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rounds")
    return int(text)


@contextlib.contextmanager
def _scene(tmpfs: str, disk: str) -> Iterator[Scene]:
    """Make all that the variants need; nothing of it outlives the block."""
    with contextlib.ExitStack() as stack:
        memory, platter = [
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="startup-", dir=base))).resolve()
            for base in (tmpfs, disk)
        ]
        for gpus in (8, 256):
            _make_nvidia_smi(platter / f"smi-{gpus}", gpus)
        yield Scene(memory, platter, tuple([stack.enter_context(_owner()).pid for _ in range(OWNERS)]))


def _owner() -> subprocess.Popen[bytes]:
    """A process that ends when its pipe closes: with this one, however that ends."""
    return subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _make_nvidia_smi(folder: Path, gpus: int) -> None:
    """A stand-in that knows the two questions asked of it; its GPUs are those that ``simulated`` shows."""
    rows = [
        f"{index}, GPU-51301a7e-0000-4000-8000-{index:012x}, 00000000:{index:02X}:00.0, Disabled, Simulated"
        for index in range(gpus)
    ]
    answers = {
        "--query-gpu=index --format=csv,noheader": [str(index) for index in range(gpus)],
        "--query-gpu=index,uuid,pci.bus_id,mig.mode.current,name --format=csv,noheader,nounits": rows,
    }
    folder.mkdir()
    script = folder / "nvidia-smi"
    with script.open("w") as file:
        file.write("#!/bin/sh\ncase $* in\n")
        for question, lines in answers.items():
            printed = "\n".join(lines)
            file.write(f"'{question}') echo '{printed}' ;;\n")
        file.write("*) exit 2 ;;\nesac\n")
    script.chmod(0o755)


def _variants(scene: Scene, flink_home: Path | None) -> Iterator[Variant]:
    nothing, disk = FileState(scene.ledger), FileState(scene.disk / "ledger")
    held = _almost_full_ledger(scene)
    yield Variant(BARE, (PYTHON, "-I", "-S", "-c", "pass"), scene.environment(8))
    for gpus in (8, 256):
        yield _ours(scene, f"default, {gpus} GPUs", gpus=gpus)
        yield _ours(scene, f"coordinated, {gpus} GPUs, tmpfs", gpus=gpus, file=nothing)
        yield _ours(scene, f"coordinated, {gpus} GPUs, disk", gpus=gpus, file=disk)
    yield _ours(scene, HELD, gpus=256, file=held, expected=LAST_TWO)
    yield _repeated_call(scene)
    yield _as_module(scene)
    yield _stand_in(scene)
    smi = "nvidia-smi"
    yield _ours(scene, "nvidia-smi, default, 8 GPUs", smi)
    yield _ours(scene, "nvidia-smi, coordinated, 8 GPUs, tmpfs", smi, file=nothing)
    yield _ours(scene, f"nvidia-smi, {HELD}", smi, gpus=256, file=held, expected=LAST_TWO)
    if flink_home:
        yield from _upstreams(scene, flink_home / UPSTREAM_SCRIPT)


def _ours(
    scene: Scene,
    label: str,
    backend: str = "",
    *,
    gpus: int = 8,
    file: FileState | None = None,
    expected: str = FIRST_TWO,
) -> Variant:
    """Our script, simulated GPUs where ``backend`` names no other; coordinated where it has a ledger."""
    ledger = ("--coordinate", "--ledger", str(file.path)) if file else ()
    return Variant(
        label=f"ours: {label}",
        command=(SCRIPT, "allocate", "2", "--backend", backend or f"simulated:{gpus}", *ledger),
        environment=scene.environment(gpus),
        expected=expected,
        file=file,
    )


def _almost_full_ledger(scene: Scene) -> FileState:
    """A ledger in which all of 256 GPUs but the last two are held, in pairs, by owners that live."""
    call = _ours(scene, "set-up", gpus=256, file=FileState(scene.ledger))
    for pair in range(127):
        owner, resource = scene.owners[pair % OWNERS], f"gpu{pair // OWNERS}"
        answer((*call.command, "--owner-pid", str(owner), "--resource", resource), call.environment)
    return FileState(scene.ledger, scene.ledger.read_bytes())


def _repeated_call(scene: Scene) -> Variant:
    """This process asks again for what the ledger says it holds: nothing is written."""
    call = _ours(scene, "coordinated, 8 GPUs, tmpfs, repeated call", file=FileState(scene.ledger))
    scene.ledger.unlink()
    answer(call.command, call.environment)
    return dataclasses.replace(call, file=FileState(scene.ledger, scene.ledger.read_bytes()), writes=False)


def _as_module(scene: Scene) -> Variant:
    """What pip's console script costs, which has neither ``-I`` nor ``-S``."""
    direct = _ours(scene, "coordinated, 8 GPUs, tmpfs, python3 -m", file=FileState(scene.ledger))
    return dataclasses.replace(
        direct,
        command=(PYTHON, "-m", "flink_gpu_discovery", *direct.command[1:]),
        environment={**direct.environment, "PYTHONPATH": str(SOURCE)},
    )


def _stand_in(scene: Scene) -> Variant:
    command = (str(scene.disk / "smi-8" / "nvidia-smi"), "--query-gpu=index", "--format=csv,noheader")
    return Variant("stand-in for nvidia-smi alone", command, scene.environment(8), "0\n1\n2\n3\n4\n5\n6\n7\n")


def _upstreams(scene: Scene, script: Path) -> Iterator[Variant]:
    path, few, many = scene.tmpfs / "coordination", scene.environment(8), scene.environment(256)
    plain = (str(script), "2")
    coordinated = (*plain, "--enable-coordination-mode", "--coordination-file", str(path))
    lines = [f"{index} {scene.owners[index // 2 % OWNERS]}\n" for index in range(254)]
    empty, held = FileState(path, b""), FileState(path, "".join(lines).encode("ascii"))
    yield Variant("upstream: plain, 8 GPUs", plain, few, FIRST_TWO)
    yield Variant("upstream: coordinated, 8 GPUs, tmpfs", coordinated, few, FIRST_TWO, empty)
    yield Variant(f"upstream: {HELD}", coordinated, many, LAST_TWO, held)


def _fetch_flink() -> tuple[Path | None, str]:
    """FLINK_HOME of the release whose script is compared, or None and why there is none."""
    command = [sys.executable, str(ROOT / "tools" / "fetch_flink.py"), FLINK_VERSION]
    done = subprocess.run(command, check=False, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
    if done.returncode or not lines:
        return None, lines[-1] if lines else f"{command[1]} ended with status {done.returncode}"
    home = Path(lines[-1])
    if not (home / UPSTREAM_SCRIPT).is_file():
        return None, f"{home} has no {UPSTREAM_SCRIPT}"
    return home, ""


def _measure_all(scene: Scene, rounds: int) -> Results:
    machine = describe_machine(PYTHON)
    flink_home, missing = _fetch_flink()
    timings = measure(_variants(scene, flink_home), rounds)
    return Results(timings, machine, file_system(scene.tmpfs), file_system(scene.disk), missing)


def _table(results: Results) -> str:
    width = max([len(timing.label) for timing in results.timings])
    lines = [f"{'milliseconds':{width}}  {'median':>8}  {'min':>8}  {'p95':>8}  {'to bare':>8}"]
    for timing in results.timings:
        times = [f"{value:8.1f}" for value in (timing.median, timing.minimum, timing.p95)]
        lines.append(f"{timing.label:{width}}  {'  '.join(times)}  {results.ratio(timing.label):7.2f}x")
    if results.missing:
        lines.append(f"upstream: skipped: {results.missing}")
    machine, reached = results.machine, results.ratio(AIM)
    lines += [
        "",
        f"{results.rounds} rounds on {machine.cpu}, {machine.cores} cores, load {machine.load:.1f} before",
        f"Linux {machine.kernel}, Python {machine.python}, tmpfs: {results.tmpfs}, disk: {results.disk}",
        f"aim: {AIM}: at most {AIM_RATIO:.2f}x bare",
        f"{'holds' if reached <= AIM_RATIO else 'MISSED'}: {reached:.2f}x",
    ]
    return "\n".join(lines)


def _json(results: Results) -> str:
    rows = [
        {
            "label": timing.label,
            "median_ms": round(timing.median, 3),
            "min_ms": round(timing.minimum, 3),
            "p95_ms": round(timing.p95, 3),
            "ratio_to_bare": round(results.ratio(timing.label), 3),
        }
        for timing in results.timings
    ]
    reached = results.ratio(AIM)
    document = {
        "rounds": results.rounds,
        "rows": rows,
        "upstream_skipped": results.missing or None,
        "machine": dataclasses.asdict(results.machine),
        "file_systems": {"tmpfs": results.tmpfs, "disk": results.disk},
        "aim": {"label": AIM, "limit": AIM_RATIO, "ratio": round(reached, 3), "holds": reached <= AIM_RATIO},
    }
    return json.dumps(document, indent=2)


def _print_imports(scene: Scene, backend: str, rounds: int) -> None:
    """What the coordinated call imports beyond the bare interpreter, the slowest first."""
    call = _ours(scene, "imports", backend, file=FileState(scene.ledger))
    call = dataclasses.replace(call, command=(PYTHON, "-IS", *call.command))
    bare = Variant(BARE, (PYTHON, "-IS", "-c", "pass"), call.environment)
    known = {one.module for one in import_times(bare, 1)}
    found = import_times(call, rounds)
    added = [one for one in found if one.module not in known]
    print("milliseconds, medians: own time, time with what it imports")
    for one in added:
        print(f"{one.own:8.2f}  {one.cumulative:8.2f}  {one.module}")
    total = sum([one.own for one in added])
    print(f"{total:8.2f}            all of these {len(added)}")
    print(f"{sum([one.own for one in found]) - total:8.2f}            those of the bare interpreter")


if __name__ == "__main__":
    sys.exit(main())
