"""Flink's own configuration loader as a judge: one JVM for each release, which loads folder after folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from .readers import put

SOURCE = Path(__file__).with_name("LoadConfiguration.java")

_COMPILE_SECONDS = 60.0
_LOAD_SECONDS = 20.0
_END_SECONDS = 5.0
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Dlog4j2.level=WARN")
_MESSAGE = re.compile(r"^.*? (?:WARN|ERROR) +(?:\S+ - )?(.*)$", re.MULTILINE)  # behind the logger's name, if it has one
_PLACE = re.compile(r"line (\d+), column (\d+)")


@dataclass(frozen=True)
class Loaded:
    """What a release makes of a folder: its settings as text, its external resources and their amounts.

    Where only the use of the external resources fails, ``settings`` are there beside the ``error``: the exceptions,
    outermost first, in one line.
    """

    settings: dict[str, str]
    resources: dict[str, str]
    error: str | None
    log: tuple[str, ...]

    @property
    def place(self) -> tuple[int, int] | None:
        """The line and column that the error names as the problem's, both counted from 1."""
        places = _PLACE.findall(self.error or "")
        return (int(places[-1][0]), int(places[-1][1])) if places else None


def compile_loader(flink_home: Path, folder: Path) -> Path:
    """Compile the program; what was compiled against one release runs on all of them."""
    command = ["javac", "-proc:none", "--release", "11", "-cp", f"{flink_home}/lib/*", "-d", str(folder), str(SOURCE)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_COMPILE_SECONDS)
    assert done.returncode == 0, done.stderr
    return folder


class Loader:
    """``with Loader(home, classes) as loader``: the release's JVM runs until the end of the block."""

    def __init__(self, flink_home: Path, classes: Path) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed by __exit__
        self._process = subprocess.Popen(
            ["java", *_OPTIONS, "-cp", f"{classes}:{flink_home}/lib/*", "LoadConfiguration"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},  # the flat file is read in the locale's charset
        )

    def load(self, folder: Path) -> Loaded:
        """Load a folder's configuration."""
        return self._ask(folder=str(folder))

    def load_settings(self, settings: Mapping[str, str]) -> Loaded:
        """Make a configuration of texts, as Flink's operator for Kubernetes does."""
        return self._ask(settings=settings)

    def write_anew(self, folder: Path, file: Path) -> Loaded:
        """Load a folder's configuration and write it as Flink's clients do for YARN and Kubernetes."""
        return self._ask(folder=str(folder), write=str(file))

    def _ask(self, **request: object) -> Loaded:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._killed_after(_LOAD_SECONDS):
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        assert line, f"{request} was not answered within {_LOAD_SECONDS:.0f} s: {self._complaint()}"
        answer = json.loads(line)
        error = re.sub(r"\s+", " ", " <- ".join(answer["error"])) or None
        return Loaded(answer["settings"], answer["resources"], error, tuple(_MESSAGE.findall(answer["log"])))

    def load_files(self, files: Mapping[str, bytes | None]) -> Loaded:
        """Load a folder that holds these files and nothing else."""
        with tempfile.TemporaryDirectory(prefix="flink-conf-") as folder:
            return self.load(put(Path(folder), files))

    @contextmanager
    def _killed_after(self, seconds: float) -> Iterator[None]:
        timer = threading.Timer(seconds, self._process.kill)
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _complaint(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def __enter__(self) -> Loader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._errors, self._process, self._killed_after(_END_SECONDS):
            assert self._process.stdin is not None
            self._process.stdin.close()  # the end of its input is the end of the program
            self._process.wait()
