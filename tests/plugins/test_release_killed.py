"""A run killed before any of its changes: what is current is whole all the time, and the next run mends the rest."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Wish
from ansible_collections.flinkops.gpu.plugins.module_utils.release_python import choose
from ansible_collections.flinkops.gpu.plugins.module_utils.release_state import manifest_of, survey
from ansible_collections.flinkops.gpu.plugins.module_utils.release_store import Store

from tests.plugins.releasing import PYTHON, SCRIPT, Host, small

A, B, C = small("1.0"), small("2.0"), small("3.0")
_CHANGES = {
    *("os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.chmod", "os.chown", "os.utime"),
    "subprocess.Popen",
}
_WRITING = os.O_WRONLY | os.O_RDWR
pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]


def _damage(host: Host) -> None:
    folder = host.release(B.name)
    shutil.rmtree(folder / "bin")
    (folder / "pynvml.py").write_text("edited")
    (folder / "stray").mkdir()
    (folder / "MANIFEST").chmod(0o600)
    shutil.rmtree(folder / "__pycache__")


def _nothing(_: Host) -> None:
    pass


def _two(host: Host) -> None:
    host.install(A)
    host.install(B)


def _rolled_back(host: Host) -> None:
    _two(host)
    host.roll_back()


def _damaged(host: Host) -> None:
    _two(host)
    _damage(host)


# What is there before, what is killed, and which release may be incomplete, since it was before.
SCENARIOS: dict[str, tuple[Callable[[Host], None], Callable[[Host], object], str]] = {
    "a first run": (_nothing, lambda host: host.install(A), ""),
    "an upgrade that prunes": (_two, lambda host: host.install(C), ""),
    "mending": (_damaged, lambda host: host.install(B), B.name),
    "rolling back": (_two, lambda host: host.roll_back(), ""),
    "installing after that": (_rolled_back, lambda host: host.install(A), ""),
    "removal": (_two, lambda host: host.remove(), ""),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_killed_at_any_change_is_mended_by_the_next(tmp_path: Path, name: str) -> None:
    prepare, act, damaged = SCENARIOS[name]
    start = Host(tmp_path / "start")
    start.folder.mkdir()
    prepare(start)
    changes = 0
    while True:
        changes += 1
        host = Host(tmp_path / "host")
        shutil.copytree(start.folder, host.folder, symlinks=True)
        killed = _killed_at(changes, partial(act, host))
        if not killed:
            break
        _require_whole(host, damaged)
        act(host)
        _require_clean(host, act)
        shutil.rmtree(host.folder)
    assert changes > 5, "the audit hook saw nothing"


def _killed_at(nth: int, act: Callable[[], object]) -> bool:
    """Run it in a child that is killed before its ``nth`` change; False if it made fewer."""
    child = _forked(act, nth)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, -signal.SIGKILL), "the run failed by itself"
    return code != 0


def _forked(act: Callable[[], object], nth: int = 0) -> int:
    """A child that does it and exits with 0, or is killed before its ``nth`` change."""
    child = os.fork()
    if child == 0:
        try:
            sys.addaudithook(_killer(nth))
            act()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def _killer(nth: int) -> Callable[[str, Any], None]:
    left = [nth]

    def hook(event: str, arguments: Any) -> None:
        if event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING):
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook


def _require_whole(host: Host, damaged: str) -> None:
    """What is current runs, unless it was damaged before."""
    name = Store(str(host.root)).current()
    if not name or name == damaged:
        return
    folder = host.release(name)
    state = survey(folder, manifest_of(folder), choose(PYTHON))
    assert (state.damage, state.bytecode) == ({}, {})
    assert host.answer() == f"{name.partition('-')[0]}\n"


def _require_clean(host: Host, act: Callable[[Host], object]) -> None:
    again = act(host)
    assert isinstance(again, dict)
    assert again["actions"] == []
    if host.root.exists():
        assert not [name for name in host.names() if name.startswith(".")]
        assert not list(host.root.rglob("*.new"))
        _require_whole(host, "")


def test_runs_at_the_same_time_follow_one_another(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.install(A)
    children: list[int] = []
    for made in (B, C, B, C):
        archive = tmp_path / f"{len(children)}.tar"
        archive.write_bytes(made.archive())
        wish = Wish("present", made.name, made.manifest, str(archive), python=PYTHON)
        children.append(_forked(partial(host.run, wish)))
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0] * 4
    assert host.names() == {B.name, C.name}
    _require_whole(host, "")


def test_the_next_run_waits_for_a_compiler_that_outlived_its_run(tmp_path: Path) -> None:
    host = Host(tmp_path)
    python = tmp_path / "python"
    started = tmp_path / "started"
    python.write_text(f'#!/bin/sh\ncase "$*" in *compileall*) touch {started}; sleep 1;; esac\nexec {PYTHON} "$@"\n')
    python.chmod(0o755)
    child = _forked(lambda: host.install(A, python=str(python)))
    deadline = time.monotonic() + 20
    while not started.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with pytest.raises(ReleaseError, match=r"another run has held .* try again later"), Store(str(host.root)).locked(0):
        pass
    assert host.install(A)["actions"][0] == f"remove leftover .new-{A.name}"
    assert host.answer() == "1.0\n"
    assert (host.current / SCRIPT).exists()
