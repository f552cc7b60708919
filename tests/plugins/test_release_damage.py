"""Every kind of damage to an installed release is named, mended, and mended once."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Wish

from tests.plugins.releasing import PYTHON, SCRIPT, Host, small, snapshot
from tests.support.script import PATH

MADE = small("1.0", one=b"x = 1\n")
INIT = "flink_gpu_discovery/__init__.py"


def _replace_by_link(path: Path, target: Path | str) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    path.symlink_to(target)


def _vanish(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path)
    return True


def _pyc(folder: Path, module: str = "one") -> Path:
    return next((folder / "flink_gpu_discovery/__pycache__").glob(f"{module}.*.pyc"))


def _file_for_folder(folder: Path) -> None:
    shutil.rmtree(folder / "bin")
    (folder / "bin").write_text("")


def _folder_for(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("")


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a file is missing": (lambda to: (to / INIT).unlink(), f"{INIT} (missing)"),
    "a file was edited": (lambda to: (to / INIT).write_text("raise\n"), f"{INIT} (other content)"),
    "a file is empty": (lambda to: os.truncate(to / SCRIPT, 0), f"{SCRIPT} (other content)"),
    "a file is closed": (lambda to: (to / INIT).chmod(0o600), f"{INIT} (mode 0600 instead of 0644)"),
    "a file is open": (lambda to: (to / SCRIPT).chmod(0o777), f"{SCRIPT} (mode 0777 instead of 0755)"),
    "a file is setuid": (lambda to: (to / SCRIPT).chmod(0o4755), f"{SCRIPT} (mode 4755 instead of 0755)"),
    "a file is another's": (lambda to: os.chown(to / INIT, 1234, 0), f"{INIT} (owner 1234:0 instead of 0:0)"),
    "a file is a link": (lambda to: _replace_by_link(to / INIT, "/etc/hostname"), f"{INIT} (not a file)"),
    "a file is a folder": (lambda to: _folder_for(to / INIT), f"{INIT} (not a file)"),
    "a folder is missing": (lambda to: shutil.rmtree(to / "bin"), "bin (missing)"),
    "a folder is open": (lambda to: (to / "bin").chmod(0o777), "bin (mode 0777 instead of 0755)"),
    "a folder is another's": (lambda to: os.chown(to, 0, 1234), ". (owner 0:1234 instead of 0:0)"),
    "a folder is a file": (_file_for_folder, "bin (not a folder)"),
    "a folder is a link": (lambda to: _replace_by_link(to / "bin", "/usr/bin"), "bin (not a folder)"),
    "a file too many": (lambda to: (to / "bin/.x.new").write_text(""), "bin/.x.new (not part of it)"),
    "a folder too many": (lambda to: shutil.copytree(to / "bin", to / "more"), "more (not part of it)"),
    "a link too many": (lambda to: (to / "x").symlink_to("/etc"), "x (not part of it)"),
    "a pipe too many": (lambda to: os.mkfifo(to / "x"), "x (not part of it)"),
    "the MANIFEST is missing": (lambda to: (to / "MANIFEST").unlink(), "MANIFEST (missing)"),
    "the MANIFEST was edited": (lambda to: (to / "MANIFEST").write_text("x"), "MANIFEST (other content)"),
    "a script starts another Python": (
        lambda to: (to / SCRIPT).write_bytes((to / SCRIPT).read_bytes().replace(b"python3", b"python2", 1)),
        f"{SCRIPT} (starts /usr/bin/python2 instead of /usr/bin/python3)",
    ),
    "half of it is there": (
        lambda to: all(map(_vanish, to.iterdir())),
        "bin (missing), bin/flink-gpu-discovery (missing), flink_gpu_discovery (missing), "
        "flink_gpu_discovery/__init__.py (missing), flink_gpu_discovery/one.py (missing)",
    ),
    "bytecode is missing": (lambda to: _pyc(to).unlink(), ""),
    "bytecode was edited": (lambda to: _pyc(to).write_bytes(b"x"), ""),
    "bytecode is open": (lambda to: _pyc(to).chmod(0o666), ""),
    "bytecode is a folder": (lambda to: _folder_for(_pyc(to)), ""),
    "bytecode is a link": (lambda to: _replace_by_link(_pyc(to), "/etc/hostname"), ""),
    "bytecode too much": (lambda to: (_pyc(to).parent / "one.cpython-38.pyc").write_text(""), ""),
    "a pipe beside bytecode": (lambda to: os.mkfifo(_pyc(to).parent / "x"), ""),
    "a link beside bytecode": (lambda to: (_pyc(to).parent / "x").symlink_to("/etc"), ""),
    "bytecode of scripts": (lambda to: (to / "bin/__pycache__").mkdir(), ""),
    "a bytecode folder is a link": (lambda to: _replace_by_link(to / "__pycache__", "/tmp"), ""),
    "the stamp is missing": (lambda to: (to / "BYTECODE").unlink(), ""),
    "the stamp is damaged": (lambda to: (to / "BYTECODE").write_bytes(b"python \xff\n\n"), ""),
    "the stamp lists too little": (lambda to: (to / "BYTECODE").write_text((to / "BYTECODE").read_text()[:200]), ""),
    "the stamp is a folder": (lambda to: _folder_for(to / "BYTECODE"), ""),
}


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = Host(tmp_path)
    found.install(MADE)
    return found


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_named_and_mended_once(host: Host, kind: str) -> None:
    damage, words = DAMAGES[kind]
    folder = host.release(MADE.name)
    before = _contents(folder)
    damage(folder)
    said = host.install(MADE, check=True)
    assert said["changed"]
    assert (f"mend {MADE.name}: {words}" if words else "compile for Python") in said["actions"][0]
    assert said["diff"]["before"] != said["diff"]["after"] or not words
    assert host.install(MADE)["actions"] == said["actions"]
    assert _contents(folder) == before
    assert host.answer() == "1.0\n"
    assert host.install(MADE, ship=False)["actions"] == []
    assert Path("/etc/hostname").exists()


def _contents(folder: Path) -> dict[str, object]:
    """Kinds, modes, owners and contents; bytecode may differ between two runs of a compiler."""
    found = snapshot(folder)
    return {path: seen[:2] if "pyc" in path or path == "BYTECODE" else seen[:3] for path, seen in found.items()}


@pytest.mark.parametrize("kind", ["a link", "a file"])
def test_something_else_in_a_releases_place_makes_way(host: Host, tmp_path: Path, kind: str) -> None:
    folder = host.release(MADE.name)
    if kind == "a link":
        folder.rename(tmp_path / "moved")
        folder.symlink_to(tmp_path / "moved")
    else:
        shutil.rmtree(folder)
        folder.write_text("")
    said = host.install(MADE, check=True)["actions"]
    assert said[0] == f"unpack {MADE.name}"
    assert host.install(MADE)["actions"] == said
    assert not folder.is_symlink()
    assert host.names() == {MADE.name}
    assert host.install(MADE)["changed"] is False


@pytest.mark.parametrize("target", ["releases/9-000000000000", "/etc", "releases/../../x"])
def test_a_current_that_leads_elsewhere_is_switched(host: Host, target: str) -> None:
    _replace_by_link(host.current, target)
    said = f"switch current from {target.replace('releases/9', '9')} to {MADE.name}"
    assert host.install(MADE)["actions"] == [said]
    assert host.answer() == "1.0\n"


def test_callers_notice_nothing_of_mending_and_switching(host: Host) -> None:
    other = small("1.0", two=b"y = 2\n")
    failures: list[str] = []
    stopping = threading.Event()

    def call() -> None:
        while not stopping.is_set():
            done = subprocess.run(
                [host.current / SCRIPT], capture_output=True, env={"PATH": PATH}, timeout=20, check=False
            )
            if done.stdout != b"1.0\n":
                failures.append(done.stderr.decode())

    caller = threading.Thread(target=call)
    caller.start()
    try:
        for made in (other, MADE) * 3:
            (host.current.resolve() / SCRIPT).chmod(0o775)
            _pyc(host.current.resolve(), "__init__").unlink()
            assert host.install(MADE if made is other else other)["changed"]
    finally:
        stopping.set()
        caller.join(timeout=30)
    assert failures == []


@pytest.mark.parametrize("folder", ["", "releases", ".."])
@pytest.mark.parametrize("kind", ["another's", "open"])
def test_a_folder_that_others_may_change_is_refused(host: Host, folder: str, kind: str) -> None:
    path = (host.root / folder).resolve()
    if kind == "open":
        path.chmod(0o775)
    else:
        os.chown(path, 1234, 0)
    said = "has mode 0775, so others than root may write there" if kind == "open" else "belongs to uid 1234"
    mend = "chmod go-w" if kind == "open" else "chown -h root:root"
    for check in (True, False):
        with pytest.raises(FilingError, match=rf"{path}\b.* {said}.*: {mend} {path}$"):
            host.install(MADE, check=check)
        with pytest.raises(FilingError, match=said):
            host.roll_back(check=check)


@pytest.mark.parametrize("name", ["opt", "opt/releases"])
def test_a_linked_folder_is_refused(host: Host, tmp_path: Path, name: str) -> None:
    (tmp_path / name).rename(tmp_path / "moved")
    (tmp_path / name).symlink_to(tmp_path / "moved")
    with pytest.raises(ReleaseError, match=r"is not a folder .*move it away"):
        host.install(MADE)


def test_a_current_that_is_no_link_is_refused(host: Host) -> None:
    host.current.unlink()
    host.current.mkdir()
    with pytest.raises(ReleaseError, match="current is not a symbolic link: move it away"):
        host.install(MADE)


@pytest.mark.parametrize("name", ["opt", "opt/releases"])
def test_a_closed_folder_is_opened_for_reading(host: Host, tmp_path: Path, name: str) -> None:
    (tmp_path / name).chmod(0o700)
    said = host.install(MADE, check=True)["actions"]
    assert said == [f"set the mode of {tmp_path / name} to 0755"]
    assert host.install(MADE)["actions"] == said
    assert host.install(MADE)["changed"] is False


def test_a_name_of_another_manifest_is_refused(host: Host) -> None:
    for name in ("1.0-000000000000", "../../x", ""):
        with pytest.raises(ReleaseError, match="doesn't fit the manifest"):
            host.run(Wish("present", name, MADE.manifest, python=PYTHON))
