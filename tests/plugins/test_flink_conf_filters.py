"""The filters as playbooks call them, through Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def evaluate(folder: Path, expression: str, **variables: Any) -> Any:
    """The expression's value, or Ansible's message where it fails."""
    copy = {"content": f"{{{{ ({expression}) | to_json }}}}", "dest": str(folder / "out"), "mode": "0600"}
    tasks = [{"ansible.builtin.copy": copy}]
    play = [{"hosts": "localhost", "gather_facts": False, "vars": variables, "tasks": tasks}]
    (folder / "play.yml").write_text(json.dumps(play))
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(ROOT / ".venv/collections"),
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
