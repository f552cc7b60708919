"""The filters as playbooks call them, through Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.flinkops.gpu.plugins.filter.flink_conf import FilterModule
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
WANTED = wanted_settings([Resource("gpu", 1)])


def evaluate(folder: Path, expression: str, tracebacks: str = "never", **variables: Any) -> Any:
    """The expression's value, or Ansible's message where it fails."""
    copy = {"content": f"{{{{ ({expression}) | to_json }}}}", "dest": str(folder / "out"), "mode": "0600"}
    tasks = [{"ansible.builtin.copy": copy}]
    play = [{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}]
    (folder / "play.yml").write_text(json.dumps(play))
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"),
        "ANSIBLE_DISPLAY_TRACEBACK": tracebacks,
        "ANSIBLE_HOME": str(folder),
        "ANSIBLE_LOCALHOST_WARNING": "false",
    }
    words = ["-i", "localhost,", "-c", "local", "-e", f"ansible_python_interpreter={sys.executable}", "play.yml"]
    command = [str(BIN / "ansible-playbook"), *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=50, check=False)
    return json.loads((folder / "out").read_text()) if done.returncode == 0 else done.stdout + done.stderr


def encoded(content: bytes) -> str:
    return b64encode(content).decode()


def test_settings_are_made_merged_read_and_removed(tmp_path: Path) -> None:
    content = b"# Gr\xf6\xdfe\r\na: 1\r\n"
    settings = "[{'name': 'gpu', 'amount': 2, 'script': none}] | flinkops.gpu.flink_gpu_settings(deployment='yarn')"
    merged = f"content | flinkops.gpu.flink_conf_merge('flink-conf', {settings}, drop_names=['old'])"
    values = [
        merged,
        f"({merged}) | flinkops.gpu.flink_conf_read('flink-conf')",
        f"({merged}) | flinkops.gpu.flink_conf_remove('flink-conf', ['gpu'])",
    ]
    text, reading, without = evaluate(tmp_path, f"[{', '.join(values)}]", content=encoded(content))
    assert b64decode(text).startswith(content + b"external-resources: gpu\r\nexternal-resource.gpu.amount: 2\r\n")
    assert reading["settings"]["external-resource.gpu.yarn.config-key"] == "yarn.io/gpu"
    assert (reading["resources"], reading["warnings"], reading["error"]) == (["gpu"], [], None)
    assert b64decode(without) == content


def test_a_file_that_flink_refuses_is_an_answer_of_reading(tmp_path: Path) -> None:
    reading = evaluate(
        tmp_path, "content | flinkops.gpu.flink_conf_read('config-yaml')", content=encoded(b"a: 1\na: 2\n")
    )
    assert (reading["error"]["line"], reading["error"]["column"], reading["settings"]) == (2, 1, {})


def test_served_resources_are_told_from_others(tmp_path: Path) -> None:
    resources = [{"name": "a", "args": None}, {"name": "b", "script": "/x"}, {"name": "c", "driver_class": "org.x.D"}]
    assert evaluate(tmp_path, "resources | flinkops.gpu.flink_gpu_served", resources=resources) == resources[:1]


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("content | flinkops.gpu.flink_conf_remove('config-yaml', ['gpu'])", "line 2, column 1: 'a' again"),
        ("[{'name': 'gpu', 'amount': 'two'}] | flinkops.gpu.flink_gpu_settings", "a number from 1"),
        ("[{'name': 'gpu', 'amount': 1, 'count': 1}] | flinkops.gpu.flink_gpu_settings", "allowed: name, amount"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(tmp_path: Path, expression: str, says: str) -> None:
    said = evaluate(tmp_path, expression, content=encoded(b"a: 1\na: 2\n"))
    assert says in said
    assert "Traceback" not in said


def function_of(name: str) -> Callable[..., Any]:
    function = FilterModule().filters()[name]
    assert callable(function)
    return function


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("flink_conf_remove", ["", "config-yaml", "gpu"], "names is text; give it a list"),
        ("flink_conf_remove", ["", "config-yaml", None], "names is null; give it a list"),
        ("flink_conf_remove", ["", "config-yaml", [1]], "an item of names is a number; give it a list of texts"),
        ("flink_conf_merge", ["", "config-yaml", WANTED, "gpu"], "drop_names is text; give it a list"),
        ("flink_conf_merge", ["", "config-yaml", {}], "wanted has no 'external-resources'; give it what"),
        ("flink_conf_merge", ["", "config-yaml", {"external-resources": "x"}], "wanted has no 'external-resource.x."),
        ("flink_conf_merge", ["", "config-yaml", {**WANTED, "a": 1}], "'a' in wanted is a number; give it what"),
        ("flink_conf_merge", ["", "config-yaml", ["gpu"]], "wanted is a list; give it what"),
        ("flink_conf_read", ["", "yaml"], "format is 'yaml'; allowed: flink-conf, config-yaml"),
        ("flink_conf_read", ["", ["config-yaml"]], "allowed: flink-conf, config-yaml"),
        ("flink_conf_read", ["YQ", "config-yaml"], "content is no base64 (Incorrect padding); give it what slurp"),
        ("flink_conf_read", ["\xe4", "config-yaml"], "content is no base64"),
        ("flink_conf_read", [{"content": ""}, "config-yaml"], "content is a mapping; give it base64"),
        ("flink_gpu_settings", [{"name": "gpu", "amount": 1}], "the list of external resources is a mapping; give it"),
        ("flink_gpu_settings", [["gpu"]], "an external resource is text; give it"),
        ("flink_gpu_settings", [[{"name": None, "amount": 1}]], "a name of 1 to 64"),
        ("flink_gpu_settings", [[{"name": "gpu", "amount": "9" * 5000}]], "a number from 1"),
        ("flink_gpu_settings", [[{"name": "gpu", "amount": True}]], "amount is true or false; give it text or a"),
        ("flink_gpu_settings", [[{"name": "gpu", "amount": 1, "args": []}]], "args is a list; give it text"),
        ("flink_gpu_served", ["gpu"], "the list of external resources is text; give it"),
        ("flink_gpu_served", [[{"script": ["/x"]}]], "script is a list; give it text"),
    ],
)
def test_a_value_of_a_wrong_kind_is_refused(name: str, given: list[Any], says: str) -> None:
    with pytest.raises(AnsibleFilterError, match=rf"flinkops\.gpu\.{name}: ") as caught:
        function_of(name)(*given)
    assert says in str(caught.value)


def test_a_resource_of_a_wrong_kind_is_a_fault() -> None:
    assert "is text; give it a list" in function_of("flink_gpu_settings_fault")("gpu")
    assert "args is a list; give it text" in function_of("flink_gpu_settings_fault")(
        [{"name": "a", "amount": 1, "args": []}]
    )


def test_no_cause_that_ansible_could_show_holds_a_value(tmp_path: Path) -> None:
    content = encoded(b"s3.secret-key: 'hunter2\n")
    said = evaluate(
        tmp_path, "content | flinkops.gpu.flink_conf_remove('config-yaml', ['gpu'])", "always", content=content
    )
    assert "unexpected end of stream" in said
    assert "hunter2" not in said
