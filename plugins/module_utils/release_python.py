"""The host's own Python: which one starts the scripts, and the bytecode that it makes of a release."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_trust import check_all
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

OLDEST = (3, 9)
CANDIDATES = ("/usr/bin/python3", *(f"/usr/bin/python3.{minor}" for minor in range(13, 8, -1)))
_PATH = re.compile(r"/[!-~]{1,119}")  # the kernel reads at least 127 bytes of a first line, and splits it at blanks
_PROBE = (
    "import sys, importlib.util as u;"
    "print('%d.%d.%d' % sys.version_info[:3], u.MAGIC_NUMBER.hex(), sys.implementation.cache_tag)"
)
_PROBE_SECONDS, _COMPILE_SECONDS = 20, 120


@dataclass(frozen=True)
class Python:
    """An interpreter: its path, its version, and what names and heads its bytecode."""

    path: str
    version: str
    magic: str
    tag: str

    def line(self) -> str:
        """All of it in one line."""
        return f"python {self.path} {self.version} {self.magic} {self.tag}"

    def cached(self, source: str) -> str:
        """The path of the bytecode of the source at this path (PEP 3147)."""
        folder, _, name = source.rpartition("/")
        return f"{folder}/__pycache__/{name[:-3]}.{self.tag}.pyc".lstrip("/")


def from_line(line: str) -> Python | None:
    """What ``Python.line`` wrote; ``None`` if it didn't."""
    words = line.split(" ")
    return Python(*words[1:]) if len(words) == 5 and words[0] == "python" else None  # noqa: PLR2004


def choose(wanted: str) -> Python:
    """The interpreter at ``wanted``; where that is empty, the host's first one that is new enough.

    None is started before it is known that nobody but root could have put it there: ``FilingError``.
    """
    if wanted and not _PATH.fullmatch(wanted):
        raise ReleaseError(f"python: {wanted!r} can't start scripts: give an absolute path, 120 bytes, no blanks")
    answers: dict[str, Python | str] = {}
    for path in (wanted,) if wanted else CANDIDATES:
        answer = answers[path] = _probe(path) if check_all(path) else "not there"
        if isinstance(answer, Python):
            return answer
    found = ", ".join(f"{path}: {answer}" for path, answer in answers.items())
    raise ReleaseError(f"no Python >= 3.9 on this host ({found}): install one, or set python to its path")


def _probe(path: str) -> Python | str:
    """What is at ``path``, or in words why it can't be used."""
    try:
        done = _run([path, "-IS", "-c", _PROBE], seconds=_PROBE_SECONDS)
    except (OSError, subprocess.SubprocessError) as error:
        return f"does not start ({error})"
    words = done.stdout.split()
    if done.returncode or len(words) != 3:  # noqa: PLR2004
        return f"not a Python 3 (exit code {done.returncode})"
    new_enough = tuple(map(int, words[0].split(".")[:2])) >= OLDEST
    return Python(path, *words) if new_enough else f"Python {words[0]}"


def compile_tree(python: Python, folder: Path, final: Path, *, held: int) -> None:
    """Byte-compile all below ``folder`` for being run at ``final``.

    Unchecked: a caller reads no source then. ``held`` is the lock's descriptor: a compiler that outlives a killed run
    keeps it, so that the next run waits for its end.
    """
    command = [python.path, "-IS", "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash"]
    command += ["-s", str(folder), "-p", str(final), str(folder)]
    try:
        done = _run(command, seconds=_COMPILE_SECONDS, held=(held,))
    except (OSError, subprocess.SubprocessError) as error:
        raise ReleaseError(f"{python.path} does not compile the release: {error}") from error
    if done.returncode:
        said = " ".join((done.stdout + done.stderr).split())[:500]
        raise ReleaseError(f"{python.path} ({python.version}) can't compile the release: {said}: choose another python")


def _run(command: list[str], *, seconds: int, held: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={"LC_ALL": "C"},
        cwd="/",
        timeout=seconds,
        check=False,
        pass_fds=held,
        umask=0o022,
    )
