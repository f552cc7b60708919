"""The settings file: INI, one section, the names of the command line's options.

Hand-written, since ``configparser`` costs as much again as starting Python and reads more than is meant here
(interpolation, continued lines, sections that nobody looks at).
"""

from __future__ import annotations

import os
import stat

from flink_gpu_discovery.errors import PermissionRefusedError, SettingsError
from flink_gpu_discovery.given import Given
from flink_gpu_discovery.options import SETTINGS

SECTION = "flink-gpu-discovery"
_LARGEST_BYTES = 64 * 1024


def load(path: str, *, required: bool) -> Given:
    """The settings in ``path``; none if the file is missing and not ``required``.

    Raises ``SettingsError`` with file and line for anything that isn't understood.
    """
    try:
        content = _read(path)
    except FileNotFoundError as error:
        if not required:
            return Given(SettingsError)
        raise SettingsError(f"{path}: no such settings file", "create it or leave out --config") from error
    except PermissionError as error:
        raise PermissionRefusedError(f"{path}: may not be read by uid {os.geteuid()}", "chmod 0644 it") from error
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}", "name a readable file") from error
    try:
        return parse(content.decode("utf-8"), path)
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: not UTF-8 at byte {error.start}", "save it as UTF-8") from error


def parse(text: str, path: str) -> Given:
    """Read ``[flink-gpu-discovery]`` and its ``name = value`` lines; ``#`` and ``;`` start comment lines."""
    given = Given(SettingsError)
    section = ""
    for number, line in enumerate(text.removeprefix("\ufeff").splitlines(), 1):
        stripped = line.strip()
        place = f"{path}:{number}"
        if not stripped or stripped[0] in "#;":
            continue
        if stripped[0] == "[":
            section = _section(stripped, place, section)
        elif not section:
            raise SettingsError(f"{place}: a setting before the section", f"start with [{SECTION}]")
        else:
            _add(given, stripped, place)
    return given


def _section(line: str, place: str, before: str) -> str:
    if line != f"[{SECTION}]" or before:
        wrong = "given twice" if before else f"unknown section {line[:60]!r}"
        raise SettingsError(f"{place}: {wrong}", f"the one section is [{SECTION}]")
    return SECTION


def _add(given: Given, line: str, place: str) -> None:
    name, equals, value = (part.strip() for part in line.partition("="))
    if name not in SETTINGS:
        raise SettingsError(f"{place}: unknown setting {name[:60]!r}", f"known are {', '.join(SETTINGS)}")
    if not equals or not value:
        raise SettingsError(f"{place}: {name} has no value", f"write '{name} = VALUE'")
    if not given.add(name, value, f"{place}: {name}"):
        raise SettingsError(f"{place}: {name} is given twice", "give it once")


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode) and path != os.devnull:
            raise SettingsError(f"{path}: not a regular file", "name a file")
        content = os.read(descriptor, _LARGEST_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _LARGEST_BYTES:
        raise SettingsError(f"{path}: larger than {_LARGEST_BYTES} bytes", "it is no settings file")
    return content
