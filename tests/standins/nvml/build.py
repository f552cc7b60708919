"""Compiles the stand-in ``libnvidia-ml.so.1``, whole or without some entry points."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

LIBRARY_NAME = "libnvidia-ml.so.1"

_SOURCES = Path(__file__).parent
_COMPILE_SECONDS = 120


def missing_compiler() -> str | None:
    """Why the library can't be built here, or None: a reason for ``pytest.skip``."""
    return None if shutil.which("gcc") else "gcc is not installed, so the NVML stand-in can't be built"


def entry_points() -> tuple[str, ...]:
    """The names of the functions that the whole library exports."""
    text = (_SOURCES / "entry_points.h").read_text(encoding="ascii")
    return tuple(re.findall(r"(?:SYSTEM|DEVICE)\((nvml\w+)\)", text))


def build(folder: Path, *, omit: Sequence[str] = (), default_scenario: Path | None = None) -> Path:
    """Compile into ``folder`` and return the library's path.

    ``omit`` names entry points that are not exported, as in a driver from before they existed: pynvml
    answers a call with NVML_ERROR_FUNCTION_NOT_FOUND. ``default_scenario`` is the file that is read when
    the environment names none, for callers whose environment is wiped.
    """
    unknown = set(omit) - set(entry_points())
    if unknown:
        raise ValueError(f"the stand-in has no entry point {', '.join(sorted(unknown))}")
    folder.mkdir(parents=True, exist_ok=True)
    library = folder / LIBRARY_NAME
    command = [
        *("gcc", "-std=c11", "-O1", "-g", "-Wall", "-Wextra", "-Werror"),
        *("-fPIC", "-shared", "-fvisibility=hidden", f"-Wl,-soname,{LIBRARY_NAME}"),
        *_hiding(folder, omit),
        *_defaulting(default_scenario),
        *("-o", str(library)),
        *(str(source) for source in sorted(_SOURCES.glob("*.c"))),
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"gcc could not build the NVML stand-in:\n{result.stderr}")
    return library


def _hiding(folder: Path, omit: Sequence[str]) -> list[str]:
    """Hidden by the linker, so that functions inside the library still reach one another."""
    if not omit:
        return []
    script = folder / "omit.map"
    script.write_text(f"{{ local: {' '.join(f'{name};' for name in omit)} }};\n", encoding="ascii")
    return [f"-Wl,--version-script={script}"]


def _defaulting(scenario: Path | None) -> list[str]:
    if scenario is None:
        return []
    quoted = str(scenario).replace("\\", "\\\\").replace('"', '\\"')
    return [f'-DSTANDIN_DEFAULT_SCENARIO="{quoted}"']
