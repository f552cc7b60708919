"""A small host under a folder for the tests of ``host_files`` and ``record``, and runs that are killed on it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files import arrange
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import MARKER
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_wanted import wanted_from
from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store

_COLLECTIONS = Path(__file__).parents[2] / ".venv" / "collections"
# What Python reports before it makes, changes or removes a name; see "Audit events table" in its documentation.
_EVENTS = (
    "open",
    *(f"os.{act}" for act in ("chmod", "chown", "link", "mkdir", "remove", "rename", "rmdir", "symlink", "utime")),
)


@dataclass(frozen=True)
class Node:
    """One file, link or folder, with all that a removal has to bring back; folders are known by mode and owner."""

    kind: int
    mode: int
    owner: tuple[int, int]
    content: str
    modified: int


def tree(top: Path) -> dict[str, Node]:
    """Everything under a folder, by path."""
    return {str(path.relative_to(top)): _node(path) for path in sorted(top.rglob("*"))}


class SmallHost:
    """``etc`` and ``opt`` under a folder, where files are installed and a record is kept."""

    def __init__(self, top: Path) -> None:
        self.top = top / "host"
        self.etc = self.top / "etc"
        self.record = self.top / "opt" / "flink-gpu-discovery" / "record.json"
        self.validation = top / "validation"
        for folder in (self.top, self.etc, self.top / "opt", self.validation):
            folder.mkdir(mode=0o755)

    @property
    def store(self) -> Any:
        """The record."""
        return Store(str(self.record))

    def file(self, name: str, content: str = "", **more: str) -> dict[str, str]:
        """An entry of ``files`` under ``etc``, with the marker."""
        return {"path": str(self.etc / name), "content": f"# {MARKER}\n{content}", **more}

    def link(self, name: str, target: str) -> dict[str, str]:
        """An entry of ``files`` that is a link."""
        return {"path": str(self.etc / name), "link": target}

    def run(
        self,
        files: Sequence[dict[str, str]] = (),
        *,
        check: bool = False,
        label: Any = None,
        known: Sequence[str] = (),
    ) -> Any:
        """One run of the module's logic; without files everything is given back."""
        label = label or (lambda staged, path: None)
        folder = str(self.validation)
        return arrange(self.store, wanted_from(files), folder=folder, check=check, label=label, known=known)

    def tree(self) -> dict[str, Node]:
        """Everything on it."""
        return tree(self.top)


def some_files(host: SmallHost) -> list[dict[str, str]]:
    """A file, one in new folders, and a link."""
    return [
        host.file("settings.conf", "one\n"),
        host.file("new/deep/unit.conf", "two\n", mode="0640"),
        host.link("command", "/opt/x//bin/./command"),
    ]


def run_until_killed(act: Callable[[], object], nth: int) -> bool:
    """Run ``act`` in a child that gets SIGKILL before its ``nth`` act on a name; whether it lived that long."""
    child = os.fork()
    if child == 0:
        _die_before(nth)
        try:
            act()
        except BaseException as error:
            os.write(2, f"{error!r}\n".encode())
            os._exit(1)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert status == 0
    return False


def ansible(module: str, parameters: dict[str, Any], *options: str, python: str = "/usr/bin/python3") -> Any:
    """The result of a module of the collection on this host, run by Ansible; ``shown`` is all that it printed."""
    local = [str(Path(sys.executable).with_name("ansible")), "localhost", "-c", "local"]
    names = {"ansible_python_interpreter": python, "ansible_remote_tmp": "/tmp"}
    done = subprocess.run(
        [*local, "-m", f"flinkops.gpu.{module}", "-a", json.dumps(parameters), "-e", json.dumps(names), *options],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(_COLLECTIONS), "ANSIBLE_NOCOLOR": "1"},
    )
    assert " => {" in done.stdout, done.stdout + done.stderr
    result = json.loads("{" + done.stdout.partition(" => {")[2])
    return {**result, "shown": done.stdout}


def _die_before(nth: int) -> None:
    count = 0

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal count
        if event in _EVENTS and not str(arguments[0]).endswith((".py", ".pyc")):
            count += 1
            if count == nth:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def _node(path: Path) -> Node:
    found = path.lstat()
    if stat.S_ISLNK(found.st_mode):
        content = os.readlink(path)  # noqa: PTH115  # exactly as it is
    else:
        content = path.read_text() if stat.S_ISREG(found.st_mode) else ""
    modified = found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0
    return Node(
        stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode), (found.st_uid, found.st_gid), content, modified
    )
