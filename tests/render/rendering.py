"""Play ``render_conf`` as whoever builds an image does: with variables, or with the hosts of an inventory."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.role.collection import BIN
from tests.role.outcome import Outcome, read_results
from tests.support.script import PATH, ROOT

PLAYBOOK = "flinkops.gpu.render_conf"
_SECONDS = 120.0
_CALLBACKS = ROOT / "tests/role/callback_plugins"
_CONFIGURATION = f"""\
[defaults]
home = {{home}}
collections_path = {ROOT}/.venv/collections
collections_scan_sys_path = false
callback_plugins = {_CALLBACKS}
callbacks_enabled = task_results
forks = 2
nocolor = true
localhost_warning = false
inventory_unparsed_warning = false
[connection]
pipelining = true
"""
_UNREACHABLE = {"ansible_host": "192.0.2.1", "ansible_connection": "ssh", "ansible_become": True}


def render(
    folder: Path,
    variables: Mapping[str, Any],
    hosts: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    group: str | None = "fleet",
    check: bool = False,
    diff: bool = False,
) -> Outcome:
    """Play it in a folder, from which a relative ``flink_gpu_render_to`` counts.

    ``hosts`` are an inventory's, with the variables that each has there; none of them could be connected to. All are in
    the group ``fleet``, and ``group`` is which ``flink_gpu_hosts`` names.
    """
    (folder / "ansible.cfg").write_text(_CONFIGURATION.format(home=folder / "home"), encoding="utf-8")
    results = folder / "results"
    results.unlink(missing_ok=True)
    words = [str(BIN / "ansible-playbook"), PLAYBOOK, *["--check"] * check, *["--diff"] * diff]
    given = dict(variables)
    if hosts:
        inventory = {"fleet": {"hosts": {name: {**_UNREACHABLE, **own} for name, own in hosts.items()}}}
        (folder / "inventory.json").write_text(json.dumps(inventory), encoding="utf-8")
        words.append("--inventory=inventory.json")
        given.update({"flink_gpu_hosts": group} if group else {})
    environment = {
        "PATH": PATH,
        "LC_ALL": "C.UTF-8",
        "HOME": str(folder),
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
    }
    done = subprocess.run(
        [*words, "--extra-vars", json.dumps(given)],
        cwd=folder,
        env={**environment, "TASK_RESULTS_FILE": str(results)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr, read_results(results), 0)
