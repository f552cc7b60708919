"""A control node: plays playbooks on booted hosts with this repository's collection, as an operator does."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.booted.host import BootedHost
from tests.role.collection import BIN
from tests.role.outcome import Outcome, read_results
from tests.support.script import PATH
from tools.fetch_collections import fetch

HERE = Path(__file__).parent
PLAYBOOKS = HERE / "playbooks"

_MARK = "FLINK_GPU_TEST_PLAY"  # in the environment of all that a play starts here
_END_SECONDS = 10.0
_CONFIGURATION = """\
[defaults]
home = {home}
collections_path = {collections}
collections_scan_sys_path = false
callback_plugins = {callbacks}
callbacks_enabled = task_results
nocolor = true
[connection]
pipelining = true
"""


class PlayTimeoutError(Exception):
    """A play has not ended in its time, and was killed."""


class ControlNode:
    """``ControlNode(folder, collections).play("site.yml", [host])``.

    Nothing of the machine's own Ansible, its settings and its collections, gets in. ``collections`` is a folder that
    holds the collection under test; ``folder`` keeps what a play writes here.
    """

    def __init__(self, folder: Path, collections: Path) -> None:
        self._folder = folder
        self._serial = itertools.count(1)
        self._mark = uuid.uuid4().hex
        (folder / "bin").mkdir(parents=True)
        (folder / "bin/docker").symlink_to(HERE / "docker.sh")
        values = {"home": folder / "home", "collections": f"{collections}:{fetch()}"}
        text = _CONFIGURATION.format(**values, callbacks=HERE / "callback_plugins")
        (folder / "ansible.cfg").write_text(text, encoding="utf-8")

    def play(
        self,
        playbook: Path | str,
        hosts: Sequence[BootedHost],
        *,
        check: bool = False,
        diff: bool = False,
        tags: Sequence[str] = (),
        variables: Mapping[str, object] | None = None,
        group: str = "managed",
        kill_at: int = 0,
        seconds: float = 120,
    ) -> Outcome:
        """Play a playbook, by its absolute path or its name in a collection, on hosts which stand in the group.

        ``variables`` outrank all others (``--extra-vars``). ``kill_at``: SIGKILL ends the play before it starts its
        n-th task, counted from 1 and with those that will be skipped; ``Outcome.results`` of a whole run has as many.
        In any case no process of the play is left on this machine. ``PlayTimeoutError`` after ``seconds``.
        """
        words = [str(BIN / "ansible-playbook"), "--inventory=inventory.json"]
        words += ["--check"] * check + ["--diff"] * diff + [f"--tags={tag}" for tag in tags]
        words += ["--extra-vars=@variables.json", str(playbook)]
        serial = next(self._serial)
        folder = self._folder / f"play-{serial}"
        folder.mkdir()
        _write_json(folder / "inventory.json", _inventory(hosts, group))
        _write_json(folder / "variables.json", dict(variables or {}))
        environment = self._environment(folder, hosts[0].runtime, kill_at)
        return self._run(words, folder, {**environment, _MARK: f"{self._mark}-{serial}"}, seconds)

    def processes(self) -> list[int]:
        """Those that its plays have started on this machine, and that still run."""
        return _marked(f"{_MARK}={self._mark}-")

    def _run(self, words: Sequence[str], folder: Path, environment: Mapping[str, str], seconds: float) -> Outcome:
        start = time.monotonic()
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            player = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=environment,
                start_new_session=True,  # an interrupted test run ends it by _kill_all alone
            )
            try:
                rc = player.wait(seconds)
            except subprocess.TimeoutExpired as expired:
                raise PlayTimeoutError(f"no end after {seconds:.0f} s:\n{_text(folder / 'stdout')}") from expired
            finally:
                _kill_all(f"{_MARK}={environment[_MARK]}\0")
                player.wait(_END_SECONDS)
        taken = time.monotonic() - start
        return Outcome(rc, _text(folder / "stdout"), _text(folder / "stderr"), read_results(folder / "results"), taken)

    def _environment(self, folder: Path, runtime: str, kill_at: int) -> dict[str, str]:
        return {
            "PATH": f"{self._folder / 'bin'}:{BIN}:{PATH}",
            "HOME": str(Path.home()),
            "LC_ALL": "C.UTF-8",
            "ANSIBLE_CONFIG": str(self._folder / "ansible.cfg"),
            "TASK_RESULTS_FILE": str(folder / "results"),
            "TASK_RESULTS_KILL_AT": str(kill_at),
            "OCI_RUNTIME": runtime,
        }


def _marked(text: str) -> list[int]:
    """Processes with that in their environment: workers are in sessions of their own, and outlive their parent."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and text.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:  # it has ended, or is not ours to see
            continue
    return found


def _kill_all(text: str) -> None:
    """SIGKILL, until none is left: one may have forked meanwhile."""
    end = time.monotonic() + _END_SECONDS
    while left := _marked(text):
        assert time.monotonic() < end, f"processes {left} can't be killed"
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def _inventory(hosts: Sequence[BootedHost], group: str) -> dict[str, object]:
    common = {"ansible_connection": "community.docker.docker", "ansible_python_interpreter": "/usr/bin/python3"}
    addresses = {host.name: {"ansible_host": host.container, **common} for host in hosts}
    return {group: {"hosts": addresses}}


def _write_json(path: Path, value: Mapping[str, object]) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
