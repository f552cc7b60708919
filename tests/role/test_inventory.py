"""The example inventory and its group variables are such that a fleet can be installed with them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.booted.host import BootedHost
from tests.role.collection import BIN
from tests.role.fleet import differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode
from tests.support.script import PATH, ROOT

INVENTORY = ROOT / "playbooks" / "inventory"
GROUPS = {
    "standalone": [f"gpu-0{number}.example.org" for number in range(1, 5)],
    "yarn": ["nodemanager-01.example.org", "nodemanager-02.example.org"],
    "kubernetes_clients": ["submit.example.org"],
}
PLAYBOOKS = ("remove", "render_conf", "rollback", "rolling_restart", "site", "verify")
SCRIPT = "/usr/local/bin/flink-gpu-discovery"

booted = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]


def group_variables(group: str) -> dict[str, Any]:
    """What the inventory sets for a group."""
    values: dict[str, Any] = yaml.safe_load((INVENTORY / f"group_vars/{group}.yml").read_text(encoding="utf-8"))
    return values


def ansible(collection: Path, *words: str) -> str:
    """The output of one of Ansible's commands, which must succeed, and warn of nothing."""
    environment = {"PATH": f"{BIN}:{PATH}", "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8"}
    done = subprocess.run(
        [str(BIN / words[0]), *words[1:]],
        capture_output=True,
        env={**environment, "ANSIBLE_COLLECTIONS_PATH": str(collection), "ANSIBLE_HOME": str(collection.parent)},
        stdin=subprocess.DEVNULL,
        cwd=collection,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_the_example_inventory_gives_each_fleet_its_hosts_and_variables(collection: Path) -> None:
    told = json.loads(ansible(collection, "ansible-inventory", f"--inventory={INVENTORY}", "--list"))
    assert {group: told[group]["hosts"] for group in told["taskmanagers"]["children"]} == GROUPS
    for group, hosts in GROUPS.items():
        for host in hosts:
            assert told["_meta"]["hostvars"][host] == group_variables(group)


def test_the_syntax_of_every_playbook_is_right(collection: Path) -> None:
    assert sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml")) == sorted(PLAYBOOKS)
    names = [f"flinkops.gpu.{name}" for name in PLAYBOOKS]
    ansible(collection, "ansible-playbook", f"--inventory={INVENTORY}", "--syntax-check", *names)


class TestStandalone:
    """TaskManagers in systemd's services, confined."""

    pytestmark = booted

    def test_a_host_without_the_persistence_daemon_is_refused_before_anything_is_made(
        self, control: ControlNode, host: BootedHost
    ) -> None:
        before = snapshot(host)
        (message,) = play(control, host, "site", "standalone").failures
        assert "flink_gpu_persistenced needs nvidia-persistenced.service, which is missing" in message
        assert differences(before, snapshot(host)) == {}

    def test_a_check_on_a_fresh_host_says_what_would_be_done_and_does_nothing(
        self, control: ControlNode, host: BootedHost
    ) -> None:
        host.unit("nvidia-persistenced.service", "[Service]\nExecStart=/bin/sleep 600\n")
        host.write("/opt/flink/conf/config.yaml", "")
        before = snapshot(host)
        outcome = play(control, host, "site", "standalone", check=True)
        assert outcome.rc == 0, outcome.stdout
        assert "install | Put settings, permissions and drop-ins in their places" in outcome.changed
        assert differences(before, snapshot(host)) == {}


class TestYarn:
    """TaskManagers in YARN's containers, whose user is there already."""

    pytestmark = booted

    def test_the_node_manager_s_user_gets_one_gpu_for_each_container(
        self, control: ControlNode, host: BootedHost
    ) -> None:
        host.succeed("sh", "-ec", "groupadd hadoop && useradd --gid hadoop yarn")
        prepare_gpus(host)
        simulated: dict[str, Any] = {"flink_gpu_backend": "simulated:4,nodes=/dev/nvidia%d"}

        play(control, host, "site", "yarn", **simulated).must_succeed()

        # A shell stands for a container's process; the other one runs while it lives.
        other = f"sh -c '{SCRIPT} 1 null; :'"
        assert host.succeed("sh", "-ec", f"{SCRIPT} 1 null; {other}; :", user="yarn").split() == ["0", "1"]


class TestKubernetesClient:
    """A host from which jobs are submitted."""

    pytestmark = booted

    def test_a_host_without_gpus_is_sound(self, control: ControlNode, host: BootedHost) -> None:
        host.write("/opt/flink/conf/flink-conf.yaml", "")

        play(control, host, "site", "kubernetes_clients").must_succeed()

        settings = host.succeed("cat", "/opt/flink/conf/flink-conf.yaml")
        assert "external-resource.gpu.kubernetes.config-key: nvidia.com/gpu\n" in settings
        assert host.run("ls", "/run/flink-gpu-discovery", "/etc/sudoers.d/flink-gpu-discovery").out == ""
        assert play(control, host, "verify", "kubernetes_clients").must_succeed().changed == []


def play(
    control: ControlNode, host: BootedHost, playbook: str, group: str, *, check: bool = False, **variables: object
) -> Outcome:
    """The playbook on the host as a member of that group."""
    values = {**group_variables(group), **variables, "flink_gpu_hosts": group}
    return control.play(f"flinkops.gpu.{playbook}", [host], check=check, variables=values, group=group)
