"""Time short commands against each other, and describe the machine that they ran on.

One run of each per round, in an order that changes from round to round, so that a busy moment hits all of
them alike. Each starts from the same files, which are put back outside the measured time. A command that
fails ends the measurement: it must not look fast.
"""

from __future__ import annotations

import math
import os
import platform
import random
import statistics
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_LIMIT_SECONDS = 60.0
_QUIET = tuple([(os.POSIX_SPAWN_OPEN, descriptor, os.devnull, os.O_RDWR, 0) for descriptor in range(3)])


class MeasureError(Exception):
    """Nothing can be measured; the message is one line."""


@dataclass(frozen=True)
class FileState:
    """A file as it must be before a call: its content, or None where there must be no file."""

    path: Path
    content: bytes | None = None

    def restore(self) -> None:
        """Put it back, down to the disk, lest the measured call's own fsync pays for this."""
        if self.content is None:
            self.path.unlink(missing_ok=True)
        else:
            with self.path.open("wb") as file:
                file.write(self.content)
                file.flush()
                os.fsync(file.fileno())
        folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def found(self) -> bytes | None:
        """The content that the file has now."""
        return self.path.read_bytes() if self.path.exists() else None


@dataclass(frozen=True)
class Variant:
    """A command to time, by absolute path, and what shows that it did its work.

    ``expected`` is its whole standard output. Where it has a file, ``writes`` says whether it must change it.
    """

    label: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    expected: str = ""
    file: FileState | None = None
    writes: bool = True


@dataclass(frozen=True)
class Timing:
    """How long the runs of a variant took, from the start of the process to its end."""

    label: str
    milliseconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Half of the runs took no longer."""
        return statistics.median(self.milliseconds)

    @property
    def minimum(self) -> float:
        """The quickest run: what is left when nothing else disturbs it."""
        return min(self.milliseconds)

    @property
    def p95(self) -> float:
        """By the nearest rank: 95 of 100 runs took no longer."""
        return sorted(self.milliseconds)[math.ceil(0.95 * len(self.milliseconds)) - 1]


@dataclass(frozen=True)
class ImportTime:
    """What one module adds to the start, in milliseconds: by itself, and with all that it imports."""

    module: str
    own: float
    cumulative: float


@dataclass(frozen=True)
class Machine:
    """What the figures depend on; ``load`` is the average of the minute before."""

    cpu: str
    cores: int
    kernel: str
    python: str
    load: float


def measure(variants: Iterable[Variant], rounds: int) -> tuple[Timing, ...]:
    """Run each variant once per round, after a round that is checked and doesn't count."""
    ordered = tuple(variants)
    for variant in ordered:
        _warm_up(variant)
    taken: dict[str, list[float]] = {variant.label: [] for variant in ordered}
    order = random.Random(0)
    for _ in range(rounds):
        for variant in order.sample(ordered, len(ordered)):
            taken[variant.label].append(_run(variant))
    return tuple([Timing(label, tuple(milliseconds)) for label, milliseconds in taken.items()])


def import_times(variant: Variant, rounds: int) -> tuple[ImportTime, ...]:
    """Medians of what ``-X importtime`` reports when ``variant``, a Python command, runs; slowest first."""
    own: dict[str, list[float]] = {}
    cumulative: dict[str, list[float]] = {}
    command = (variant.command[0], "-X", "importtime", *variant.command[1:])
    for _ in range(rounds):
        if variant.file:
            variant.file.restore()
        _, errors = answer(command, variant.environment)
        for line in errors.splitlines()[1:]:  # the first one holds the columns' names
            times, _, module = line.removeprefix("import time:").rpartition("|")
            alone, _, together = times.partition("|")
            own.setdefault(module.strip(), []).append(int(alone) / 1000)
            cumulative.setdefault(module.strip(), []).append(int(together) / 1000)
    median = statistics.median
    found = [ImportTime(module, median(own[module]), median(cumulative[module])) for module in own]
    return tuple(sorted(found, key=lambda one: one.own, reverse=True))


def answer(command: Iterable[str], environment: Mapping[str, str]) -> tuple[str, str]:
    """Standard output and standard error of a command that must succeed; else ``MeasureError``."""
    words = tuple(command)
    try:
        done = subprocess.run(
            words,
            check=False,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MeasureError(f"{words[0]}: {error}") from error
    if done.returncode != 0:
        reason = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it says nothing"]
        raise MeasureError(f"{' '.join(words)}: exit status {done.returncode}: {reason[0]}")
    return done.stdout, done.stderr


def _warm_up(variant: Variant) -> None:
    """Fill the caches, and see that the variant does what it is timed for."""
    if variant.file:
        variant.file.restore()
    output, errors = answer(variant.command, variant.environment)
    if output != variant.expected or errors:
        found = f"{output[:80]!r}, with errors {errors[:300]!r}"
        raise MeasureError(f"{variant.label}: it answers {found} instead of {variant.expected!r}")
    if variant.file and (variant.file.found() != variant.file.content) != variant.writes:
        wrong = "did not change" if variant.writes else "changed"
        raise MeasureError(f"{variant.label}: it {wrong} {variant.file.path}")


def _run(variant: Variant) -> float:
    """Milliseconds of one run."""
    if variant.file:
        variant.file.restore()
    start = time.perf_counter_ns()
    child = os.posix_spawn(variant.command[0], variant.command, variant.environment, file_actions=_QUIET)
    try:
        _, status = os.waitpid(child, 0)
    except BaseException:  # interrupted: its files are about to be removed
        os.waitpid(child, 0)
        raise
    end = time.perf_counter_ns()
    if status != 0:
        code = os.waitstatus_to_exitcode(status)
        raise MeasureError(f"{variant.label}: exit status {code} in a measured run")
    return (end - start) / 1e6


def describe_machine(python: str) -> Machine:
    """This machine, and the version of the interpreter at ``python``."""
    facts = [line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines()]
    models = [value.strip() for name, _, value in facts if name.strip() == "model name"]
    version, _ = answer((python, "-I", "-S", "-c", "import sys; print(sys.version.split()[0])"), {})
    return Machine(
        cpu=models[0] if models else platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        kernel=platform.release(),
        python=version.strip(),
        load=os.getloadavg()[0],
    )


def file_system(path: Path) -> str:
    """The type of the file system at ``path``: that of the nearest mount point (proc_pid_mountinfo(5))."""
    nearest, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, source = line.partition(" - ")
        point = mount.split()[4]
        if len(point) >= len(nearest) and path.resolve().is_relative_to(point):
            nearest, kind = point, source.split()[0]
    return kind
