"""Which Python starts the scripts, and when a release is compiled anew."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils import artefact, artefact_pynvml, release_python
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError

from tests.plugins.releasing import DISCOVERY, PYTHON, SCRIPT, Host, ansible, small
from tests.support.interpreters import VERSIONS, interpreter

MADE, NEXT = small("1.0"), small("2.0")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def _wrapper(folder: Path, text: str) -> Path:
    """An interpreter of our own."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def _other() -> str:
    """An interpreter of another version than /usr/bin/python3."""
    usual = Path(PYTHON).resolve().name
    found = [interpreter(version) for version in VERSIONS if f"python{version}" != usual]
    return next((path for path in found if path), "") or pytest.skip("no second Python on this machine")


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS)
def test_the_module_and_what_it_installs_run_under_every_supported_python(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    answer = ansible(
        tmp_path / "ansible", "-e", f"ansible_python_interpreter={python}", root=str(tmp_path / "opt"), python=python
    )
    assert answer.word == "CHANGED", answer.out
    assert answer.result["python"]["path"] == python
    assert answer.result["python"]["version"].startswith(f"{version}.")
    host = Host(tmp_path)
    script = host.current / SCRIPT
    assert script.read_text().startswith(f"#!{python} -IS\n")
    assert host.answer("--version") == "flink-gpu-discovery 0.1.0\n"
    assert host.answer("inventory", "--backend", "simulated:2").count("Simulated GPU") == 2
    made = artefact.build(DISCOVERY, artefact_pynvml.read(""))
    assert host.install(made, python=python)["actions"] == [], "the scripts left something, or the names differ"


def test_the_first_one_that_is_new_enough_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = _wrapper(tmp_path, "echo 3.6.8 330d0d0a cpython-36")
    monkeypatch.setattr(release_python, "CANDIDATES", (str(tmp_path / "missing"), "/bin/false", str(old), PYTHON))
    assert release_python.choose("").path == PYTHON
    monkeypatch.setattr(release_python, "CANDIDATES", (str(tmp_path / "missing"), "/bin/false", str(old)))
    said = rf"no Python >= 3.9 .*\({tmp_path}/missing: not there, /bin/false: not a Python 3 .*, {old}: Python 3.6.8\)"
    with pytest.raises(ReleaseError, match=said):
        release_python.choose("")


@pytest.mark.parametrize("python", ["python3", "/usr/bin/env python3", "/usr/bin/python3\n", f"/{'x' * 120}", "/ü"])
def test_a_path_that_no_first_line_can_hold_is_refused(host: Host, python: str) -> None:
    with pytest.raises(ReleaseError, match="can't start scripts: give an absolute path"):
        host.install(MADE, python=python)


def test_a_wanted_python_that_is_not_there_is_not_replaced_by_another(host: Host) -> None:
    with pytest.raises(ReleaseError, match=r"\(/usr/bin/python3.1: not there\)"):
        host.install(MADE, python="/usr/bin/python3.1")


def test_a_python_that_others_may_change_is_refused(host: Host) -> None:
    python = _spy(host.folder)
    for mode in (0o775, 0o777, 0o1777):  # sticky says nothing of a file
        python.chmod(mode)
        _require_refused(host, python, f"^{python} has mode {mode:04o}, so others than root may write there")
    os.chown(python, 1234, 0)
    _require_refused(host, python, f"^{python} belongs to uid 1234")


def test_a_link_to_a_python_is_refused_where_others_may_change_the_way(host: Host) -> None:
    python = host.folder / "venv/bin/python3"
    python.parent.mkdir(parents=True)
    python.symlink_to("../../python")
    _spy(host.folder)
    for spoilt in (python, python.parent, python.parent.parent):
        os.chown(spoilt, 1234, 0, follow_symlinks=False)
        _require_refused(host, python, f"^{spoilt}.* belongs to uid 1234, who could lead it elsewhere")
        os.chown(spoilt, 0, 0, follow_symlinks=False)
    python.parent.chmod(0o775)
    _require_refused(host, python, f"^{python.parent}, on the way to {python}, has mode 0775")
    python.parent.chmod(0o755)
    assert host.install(MADE, python=str(python))["python"]["path"] == str(python)


def test_a_link_to_a_python_is_refused_where_another_link_on_the_way_is_not_roots(host: Host) -> None:
    _spy(host.folder)
    link, python = host.folder / "theirs", host.folder / "python3"
    link.symlink_to("python")
    os.chown(link, 1234, 0, follow_symlinks=False)
    python.symlink_to("theirs")
    _require_refused(host, python, f"^{link}, on the way to {python}, belongs to uid 1234")


def _spy(folder: Path) -> Path:
    """An interpreter that leaves a trace."""
    return _wrapper(folder, f'touch {folder}/started\nexec {PYTHON} "$@"')


def _require_refused(host: Host, python: Path, reason: str) -> None:
    """Nor is it started."""
    for check in (True, False):
        with pytest.raises(FilingError, match=reason):
            host.install(MADE, python=str(python), check=check)
        with pytest.raises(FilingError, match=reason):
            release_python.choose(str(python))
    assert not (host.folder / "started").exists()


def test_scripts_start_the_chosen_python_and_need_no_archive_to_start_another(host: Host) -> None:
    other = _other()
    host.install(MADE, python=other)
    assert (host.current / SCRIPT).read_text().startswith(f"#!{other} -IS\n")
    actions = host.install(MADE, ship=False)["actions"]
    assert actions[0] == f"mend {MADE.name}: {SCRIPT} (starts {other} instead of {PYTHON})"
    assert actions[1].startswith("compile for Python ")
    assert host.answer() == "1.0\n"
    assert host.install(MADE, ship=False)["actions"] == []


def test_a_host_whose_python_was_upgraded_is_compiled_anew(host: Host) -> None:
    python = host.folder / "python3"
    python.symlink_to(_other())
    host.install(MADE, python=str(python))
    before = {path.name for path in host.current.resolve().rglob("*.pyc")}
    python.unlink()
    python.symlink_to(PYTHON)
    said = host.install(MADE, python=str(python), check=True)
    result = host.install(MADE, python=str(python), ship=False)
    assert said["actions"] == result["actions"] == [f"compile for Python {result['python']['version']} ({python})"]
    assert said["diff"] == result["diff"]
    assert said["diff"]["before"] != said["diff"]["after"]
    assert before.isdisjoint(path.name for path in host.current.resolve().rglob("*.pyc"))
    assert host.install(MADE, python=str(python), ship=False)["actions"] == []


def test_bytecode_is_used_without_a_look_at_the_sources(host: Host) -> None:
    host.install(MADE)
    (host.current.resolve() / "flink_gpu_discovery/__init__.py").write_text('__version__ = "edited"\n')
    assert host.answer() == "1.0\n"


def test_tracebacks_name_the_files_where_they_lie(host: Host) -> None:
    host.install(small("1.0", wrong=b"raise SystemExit(__file__ + chr(10) + (lambda: 0).__code__.co_filename)\n"))
    pyc = next(host.current.resolve().glob("flink_gpu_discovery/__pycache__/wrong.*.pyc")).read_bytes()
    assert f"{host.current.resolve()}/flink_gpu_discovery/wrong.py".encode() in pyc
    assert b".new-" not in pyc


def test_a_release_that_does_not_compile_is_never_current(host: Host) -> None:
    host.install(MADE)
    wrong = small("2.0", wrong=b"def\n")
    with pytest.raises(ReleaseError, match=r"can't compile the release: .*wrong\.py.*choose another python"):
        host.install(wrong)
    assert host.answer() == "1.0\n"
    assert host.names() == {MADE.name}


def test_a_compiler_that_says_nothing_and_does_nothing_is_noticed(host: Host) -> None:
    python = _wrapper(host.folder, f'case "$*" in *compileall*) exit 0;; esac\nexec {PYTHON} "$@"')
    with pytest.raises(OSError, match="pyc"):
        host.install(MADE, python=str(python))
    assert host.names() == set()
    assert not host.current.is_symlink()


def test_both_names_of_a_folder_are_compiled_alike(host: Host, tmp_path: Path) -> None:
    host.install(MADE)
    host.install(NEXT)
    shutil.rmtree(host.release(NEXT.name) / "__pycache__")
    host.install(NEXT)
    pyc = next(host.release(NEXT.name).glob("__pycache__/pynvml.*.pyc")).read_bytes()
    assert str(host.release(NEXT.name) / "pynvml.py").encode() in pyc
