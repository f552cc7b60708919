"""Flink's configuration files on a host: read as they are, replaced as one, with owner and mode kept.

The folder may belong to a user that runs Flink. So root follows no link there that this user could have made.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils import host_files_disk as disk
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import State, look
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_trust import check_folders
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("config.yaml", "flink-conf.yaml")
_MOST_LINKS = 40  # MAXSYMLINKS in include/linux/namei.h
_DIST = re.compile(r"flink-dist(?:_[0-9.]+)?-([0-9]+\.[0-9]+(?:\.[0-9]+)?)")
_GPU_PLUGIN = "external-resource-gpu"


@dataclass(frozen=True)
class ConfFile:
    """A file as it stands: ``place`` is where its content lies, behind the links."""

    path: str
    place: str
    state: State

    def describe(self) -> dict[str, object]:
        """For Ansible; the content in base64, since it may be of any encoding."""
        content = base64.b64encode(self.state.content or b"").decode("ascii")
        return {"exists": self.state.exists, "content": content, "sha256": self.sha256, "place": self.place}

    @property
    def sha256(self) -> str:
        """By which the content is known again; empty if there is no file."""
        return hashlib.sha256(self.state.content).hexdigest() if self.state.content is not None else ""


def find(conf_dir: str, name: str) -> ConfFile:
    """The file of that name in the folder, where there is one; ``FilingError`` for what root may not follow."""
    path = place = os.path.join(os.path.realpath(conf_dir), name)
    for _ in range(_MOST_LINKS):
        found = look(place)
        if found.target is None:
            return ConfFile(path, place, found)
        check_folders(place)  # else who may write there would let root write anywhere
        if found.uid != 0:
            raise FilingError(f"{place} is a link of uid {found.uid}, which root doesn't follow: make it a file")
        place = os.path.realpath(os.path.join(os.path.dirname(place), os.path.dirname(found.target)))
        place = os.path.join(place, os.path.basename(found.target))
    raise FilingError(f"{path} leads through more than {_MOST_LINKS} symbolic links: make it a file")


def replace(file: ConfFile, content: bytes, *, backup: bool) -> str:
    """Put the content there, all or nothing, with owner and mode as before; returns where a backup is, or nothing.

    ``FilingError`` if the file is not as it was found: whoever changed it would lose that.
    """
    name = os.path.basename(file.place)
    kept = f"{name}.{time.strftime('%Y-%m-%dT%H%M%SZ', time.gmtime())}" if backup else ""
    with _inside(os.path.dirname(file.place)):
        if look(name) != file.state:
            raise FilingError(f"{file.place} was changed meanwhile: run again")
        if kept:
            disk.put(kept, file.state, like=name)
        disk.put(name, State(content, mode=file.state.mode, uid=file.state.uid, gid=file.state.gid))
    return os.path.join(os.path.dirname(file.place), kept) if kept else ""


@contextlib.contextmanager
def _inside(folder: str) -> Iterator[None]:
    """Work in that very folder: whoever owns the one above could put another one in its place."""
    before = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchdir(here)
        finally:
            os.close(here)
        if os.getcwd() != folder:
            raise FilingError(f"{folder} is another one by now: run again")
        yield
    finally:
        os.fchdir(before)
        os.close(before)


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


def is_folder(path: str) -> bool:
    """Whether there is a folder."""
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False


def _names(folder: str) -> list[str]:
    return sorted(entry.name for entry in Path(folder).iterdir()) if is_folder(folder) else []
