"""Flink's configuration files on a host, and what there is of Flink around them: read as it is."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_place import inside, obstacle, real
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import NOTHING, State, look
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

NAMES = ("config.yaml", "flink-conf.yaml")
_DIST = re.compile(r"flink-dist(?:_[0-9.]+)?-([0-9]+\.[0-9]+(?:\.[0-9]+)?)")
_GPU_PLUGIN = "external-resource-gpu"


@dataclass(frozen=True)
class ConfFile:
    """A file as it stands: ``place`` is where its content lies, behind the links."""

    path: str
    place: str
    state: State = NOTHING

    def describe(self) -> dict[str, object]:
        """For Ansible; the content in base64, since it may be of any encoding."""
        content = base64.b64encode(self.state.content or b"").decode("ascii")
        return {"exists": self.state.exists, "content": content, "sha256": self.sha256, "path": self.path}

    @property
    def sha256(self) -> str:
        """By which the content is known again; empty if there is no file."""
        return hashlib.sha256(self.state.content).hexdigest() if self.state.content is not None else ""


@dataclass(frozen=True)
class Reading:
    """What was found; with a ``fault``, a sentence with its mend, nothing is to be written there."""

    folder: str
    home: str
    found: bool = False
    version: str = ""
    has_gpu_plugin: bool = False
    files: dict[str, ConfFile] = field(default_factory=dict)
    fault: str = ""

    def describe(self) -> dict[str, object]:
        """For Ansible; each of the files is told of, be it there or not."""
        files = {name: ConfFile(os.path.join(self.folder, name), "") for name in NAMES}
        told = {name: file.describe() for name, file in {**files, **self.files}.items()}
        return {**vars(self), "files": told}


def read(conf_dir: str, flink_home: str = "") -> Reading:
    """What is in the folder; Flink is what it lies in, unless that is told."""
    try:
        return _read(conf_dir, flink_home)
    except FilingError as error:
        return Reading(conf_dir, flink_home, fault=str(error))
    except OSError as error:
        where = error.filename or conf_dir
        return Reading(
            conf_dir, flink_home, fault=f"{where} can't be read ({error.strerror}): name a folder that can be"
        )


def _read(conf_dir: str, flink_home: str) -> Reading:
    folder = real(conf_dir)
    found = os.path.isdir(folder)
    if os.path.lexists(folder) and not found:
        raise FilingError(f"{folder} is no folder: name the one that {' or '.join(NAMES)} lies in")
    home = flink_home or os.path.dirname(folder)
    files = {name: find(folder, name) for name in NAMES}
    places = [file.place for file in files.values() if file.state.exists] or [os.path.join(folder, NAMES[0])] * found
    fault = next(filter(None, map(obstacle, places)), "")
    return Reading(folder, home, found, version(home), has_gpu_plugin(home), files, fault)


def find(conf_dir: str, name: str) -> ConfFile:
    """The file of that name in the folder, where there is one; ``FilingError`` for what isn't read or followed."""
    path = os.path.join(real(conf_dir), name)
    place = real(path)
    return ConfFile(path, place, _look(place))


def _look(place: str) -> State:
    folder, name = os.path.split(place)
    if not os.path.lexists(folder):
        return NOTHING
    try:
        with inside(folder):
            state = _named(folder, name)
    except OSError as error:
        raise FilingError(f"{place} can't be read ({error.strerror}): name a folder whose files can be") from error
    if state.target is not None:
        raise FilingError(f"{place} is a link by now: run again")
    return state


def _named(folder: str, name: str) -> State:
    try:
        return look(name)
    except FilingError as error:  # which begins with the name
        raise FilingError(os.path.join(folder, str(error))) from error


def version(flink_home: str) -> str:
    """The version of Flink that lies there, by the name of its main jar; empty if there is none."""
    for jar in _names(os.path.join(flink_home, "lib")):
        found = _DIST.match(jar)
        if found:
            return found.group(1)
    return ""


def has_gpu_plugin(flink_home: str) -> bool:
    """Whether Flink's GPU driver is where Flink loads plugins from."""
    return any(jar.endswith(".jar") for jar in _names(os.path.join(flink_home, "plugins", _GPU_PLUGIN)))


def _names(folder: str) -> list[str]:
    return sorted(entry.name for entry in Path(folder).iterdir()) if os.path.isdir(folder) else []
