"""The modules ``host_files`` and ``record`` as Ansible runs them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.flinkops.gpu.plugins.modules import host_files, record

from tests.plugins.filing import SmallHost, ansible
from tests.support.interpreters import VERSIONS, interpreter

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")


@pytest.fixture
def host(tmp_path: Path) -> SmallHost:
    return SmallHost(tmp_path)


def test_files_are_foretold_installed_left_alone_and_given_back(host: SmallHost) -> None:
    (host.etc / "settings.conf").write_text("theirs\n")
    before = host.tree()
    parameters = {
        "files": [host.file("settings.conf", "one\n"), host.link("command", "/one")],
        "record": str(host.record),
    }
    foretold = ansible("host_files", parameters, "--check", "--diff")
    assert host.tree() == before
    assert "-theirs" in foretold["shown"]
    assert "+one" in foretold["shown"]
    done = ansible("host_files", parameters)
    assert {name: done[name] for name in ("changed", "paths", "actions", "made")} == {
        name: foretold[name] for name in ("changed", "paths", "actions", "made")
    }
    assert not ansible("host_files", parameters, "--check")["changed"]
    noted = ansible("record", {"made": ["user flink"], "record": str(host.record)}, "--diff")
    assert (noted["changed"], noted["made"], noted["files"]) == (True, ["user flink"], sorted(done["paths"]))
    assert "+user flink" in noted["shown"]
    ansible("record", {"unmade": ["user flink"], "record": str(host.record)})
    assert ansible("host_files", {"state": "absent", "record": str(host.record)})["changed"]
    assert host.tree() == before


@pytest.mark.parametrize(
    ("module", "parameters", "reason"),
    [
        ("host_files", {"files": [{"path": "etc/a", "content": ""}]}, "files: 'etc/a' is not an absolute path"),
        (
            "host_files",
            {"files": [{"path": "/etc/a", "content": ""}], "state": "absent"},
            "files: nothing can be wanted",
        ),
        ("host_files", {"record": "record.json"}, "record: 'record.json' is not an absolute path"),
        ("record", {"made": ["a"], "unmade": ["a"]}, "made and unmade both name ['a']"),
    ],
)
def test_a_bad_value_is_refused_in_one_line(module: str, parameters: dict[str, object], reason: str) -> None:
    result = ansible(module, parameters)
    assert result["msg"].startswith(reason)
    assert "\n" not in result["msg"]


def test_a_refusal_of_the_system_is_one_line_with_its_path(host: SmallHost) -> None:
    host.record.parent.mkdir()
    Path(f"{host.record}.lock").mkdir()
    result = ansible("host_files", {"files": [host.file("a")], "record": str(host.record)})
    assert f"{host.record}.lock" in result["msg"]
    assert "\n" not in result["msg"]


@pytest.mark.parametrize("module", [host_files, record])
def test_documentation_and_options_agree(module: Any) -> None:
    documented = yaml.safe_load(module.DOCUMENTATION)["options"]
    for each in (documented, *(option.get("suboptions", {}) for option in documented.values())):
        for option in each.values():
            del option["description"]
    for option in documented.values():
        if "suboptions" in option:
            option["options"] = option.pop("suboptions")
    assert documented == module._OPTIONS
    assert yaml.safe_load(module.EXAMPLES)
    assert yaml.safe_load(module.RETURN)


@pytest.mark.slow
@pytest.mark.parametrize("version", VERSIONS[:-1])  # ansible-core 2.19 knows no later Python on hosts
def test_they_run_on_every_python_of_managed_hosts(host: SmallHost, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    before = host.tree()
    parameters = {"files": [host.file("new/a"), host.link("b", "/c")], "record": str(host.record)}
    assert ansible("host_files", parameters, python=python)["changed"]
    ansible("record", {"record": str(host.record)}, python=python)
    assert ansible("host_files", {"state": "absent", "record": str(host.record)}, python=python)["changed"]
    assert host.tree() == before
