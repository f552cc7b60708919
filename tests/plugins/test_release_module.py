"""The module as playbooks call it: through Ansible, on this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.flinkops.gpu.plugins.module_utils import artefact, artefact_pynvml, release
from ansible_collections.flinkops.gpu.plugins.modules import release as module

from tests.plugins.releasing import DISCOVERY, PYNVML, SCRIPT, Answer, Host, ansible, snapshot

pytestmark = pytest.mark.slow


def _name() -> str:
    return str(artefact.build(DISCOVERY, artefact_pynvml.read("")).name)


def _uploads(answer: Answer) -> list[str]:
    """The names of the files that were copied to the host, in order."""
    return re.findall(r"PUT \S+ TO \S+/(\S+)", answer.out)


def test_check_run_first_run_second_run_and_removal(tmp_path: Path) -> None:
    host, home, root = Host(tmp_path), tmp_path / "ansible", str(tmp_path / "opt")
    said = ansible(home, "--check", "--diff", "-vvv", root=root)
    assert (said.word, _uploads(said)) == ("CHANGED", ["AnsiballZ_release.py"])
    assert not host.root.exists()
    assert "-current: none" in said.out
    assert f"+current: {_name()}" in said.out
    first = ansible(home, "-vvv", root=root)
    assert first.result["actions"] == said.result["actions"]
    assert _uploads(first) == ["AnsiballZ_release.py", "release.tar", "AnsiballZ_release.py"]
    assert (first.result["release"], first.result["releases"]) == (_name(), [_name()])
    assert host.answer("--version") == "flink-gpu-discovery 0.1.0\n"
    assert host.answer("inventory", "--backend", "simulated:2").count("Simulated GPU") == 2
    before = snapshot(host.root)
    second = ansible(home, "--diff", "-vvv", root=root)
    assert (second.word, second.result["actions"]) == ("SUCCESS", [])
    assert _uploads(second) == ["AnsiballZ_release.py"]
    assert snapshot(host.root) == before
    assert not list((home / "remote").glob("*")), "something stayed in the task's folder"
    assert ansible(home, "--check", root=root, state="absent").result["actions"][-1] == f"remove {root}"
    assert ansible(home, root=root, state="absent").word == "CHANGED"
    assert not host.root.exists()


def test_a_half_installed_host_is_described_and_mended(tmp_path: Path) -> None:
    host, home = Host(tmp_path), tmp_path / "ansible"
    options: dict[str, Any] = {"root": str(host.root), "bundle_pynvml": False}
    made = artefact.build(DISCOVERY, None)
    host.install(made)
    (host.current.resolve() / SCRIPT).unlink()
    host.current.unlink()
    before = snapshot(host.root)
    said = ansible(home, "--check", "--diff", **options)
    assert snapshot(host.root) == before
    assert said.result["actions"] == [
        f"mend {made.name}: {SCRIPT} (missing)",
        f"switch current from none to {made.name}",
    ]
    assert f"-{SCRIPT}: missing" in said.out
    done = ansible(home, "-vvv", **options)
    assert done.result["actions"] == said.result["actions"]
    assert "release.tar" in _uploads(done)
    assert not (host.current / "pynvml.py").exists()
    assert ansible(home, **options).word == "SUCCESS"


def test_rolling_back_uploads_nothing(tmp_path: Path) -> None:
    host, home, root = Host(tmp_path), tmp_path / "ansible", str(tmp_path / "opt")
    file = tmp_path / "pynvml.py"
    file.write_bytes(PYNVML)
    old = artefact.build(DISCOVERY, None)
    host.install(old)
    new = ansible(home, root=root, pynvml=str(file))
    assert new.result["actions"][-1] == f"switch current from {old.name} to {new.result['release']}"
    done = ansible(home, "-vvv", root=root, state="rolled_back")
    assert (done.result["release"], done.result["previous"]) == (old.name, "")
    assert new.result["previous"] == old.name
    assert _uploads(done) == ["AnsiballZ_release.py"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"keep": 1}, r"keep: 1 is too few"),
        ({"pynvml": "/missing/pynvml.py"}, r"no pynvml.py in /missing/pynvml.py .*flink_gpu_pynvml"),
        ({"root": "opt/.."}, r"root: .* is not the absolute path"),
        ({"python": "python3"}, r"python: 'python3' can't start scripts"),
        ({"python": "/etc/hostname/python3"}, r"/etc/hostname, on the way to /etc/hostname/python3, is no folder"),
        ({"state": "rolled_back"}, r"no release to roll back to"),
        ({"state": "latest"}, r"value of state must be one of: present, absent, rolled_back, got: latest"),
        ({"kept": 3}, r"Unsupported parameters .*kept"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_changed(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    answer = ansible(tmp_path / "ansible", **{"root": str(tmp_path / "opt"), **options})
    assert answer.word == "FAILED"
    assert re.search(said, answer.result["msg"]), answer.result["msg"]
    assert "\n" not in answer.result["msg"].strip()
    assert not (tmp_path / "opt").exists()


def test_the_documentation_names_the_arguments_that_are_taken() -> None:
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    assert documented.keys() == release.ARGUMENTS.keys()
    for name, argument in release.ARGUMENTS.items():
        written = {key: value for key, value in documented[name].items() if key != "description"}
        assert written == argument, name
    assert yaml.safe_load(module.EXAMPLES)
    assert yaml.safe_load(module.RETURN)
