"""What is rendered for YARN and Kubernetes: what Flink, the script and the cluster make of it, and that it is all."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml

from tests.role.collection import BIN
from tests.support.script import ROOT, Result, run

SCENARIO = Path(os.environ.get("MOLECULE_SCENARIO_DIRECTORY", "."))
STATE = Path(os.environ.get("MOLECULE_EPHEMERAL_DIRECTORY", "."))
RENDERED, OPERATORS = STATE / "rendered", SCENARIO / "files"
POD = {"pod-template.yaml", "flink-deployment.yaml", "flink-gpu-discovery.conf"}
NODEMANAGER = {"yarn-nodemanager.md"}

# Which files are there for each host, the one that its Flink reads first.
FILES = {
    "yarn-1.18.1": ("flink-conf.yaml", NODEMANAGER),
    "yarn-1.20.5": ("flink-conf.yaml", NODEMANAGER | {"log4j.properties"}),
    "yarn-2.3.0": ("config.yaml", NODEMANAGER),
    "kubernetes-1.19.3": ("config.yaml", POD),
    "kubernetes-2.0.2": ("config.yaml", POD),
    "kubernetes-2.3.0": ("config.yaml", POD),
}
# How many GPUs, with which arguments, and under which name the cluster counts them.
RESOURCES = {
    "yarn-1.18.1": {"gpu": (1, "", "yarn.io/gpu")},
    "yarn-1.20.5": {"gpu": (1, "", "yarn.io/gpu")},
    "yarn-2.3.0": {"gpu": (1, "--id uuid", "yarn.io/gpu")},
    "kubernetes-1.19.3": {"gpu": (1, "", "nvidia.com/gpu")},
    "kubernetes-2.0.2": {"gpu": (2, "", "amd.com/gpu"), "small": (1, "--id=uuid --debug", "amd.com/cpx_nps1")},
    "kubernetes-2.3.0": {"gpu": (1, "", "nvidia.com/gpu")},
}
YARN = [host for host in FILES if host.startswith("yarn")]
KUBERNETES = [host for host in FILES if host not in YARN]
NAMES = "external-resources"

_XML = re.compile(r"^```xml\n(.*?)^```", re.DOTALL | re.MULTILINE)
_INI = re.compile(r"^```ini\n(.*?)^```", re.DOTALL | re.MULTILINE)
_SECONDS = 120
# The folder in $1 is all that can be written to, and there is no network; then the rest of the words.
_SEALED = """\
folder=$1
shift
mount --bind "$folder" "$folder"
while read -r _ _ _ _ point _; do
  case $point in "$folder" | /proc* | /sys* | /dev*) continue ;; esac
  mount -o remount,bind,ro "$point" 2>/dev/null || echo "$point stays writable" >&2
done </proc/self/mountinfo
exec "$@"
"""


def settings(path: Path) -> dict[str, str]:
    """The file's settings by their full names, as texts."""
    text = path.read_text(encoding="utf-8")
    if path.name == "config.yaml":
        return dict(_flat("", yaml.load(text, Loader=yaml.BaseLoader)))  # all values are texts
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return dict(line.split(": ", 1) for line in lines if line)


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _flat(f"{name}.{key}" if name else key, below)
    else:
        yield name, ";".join(value) if isinstance(value, list) else value


def wanted(host: str) -> dict[str, str]:
    """What the documentation of Flink's external resources asks for, of our resources."""
    deployment = host.partition("-")[0]
    return {
        f"external-resource.{name}.{key}": value
        for name, (amount, args, device) in RESOURCES[host].items()
        for key, value in {
            "amount": str(amount),
            "driver-factory.class": "org.apache.flink.externalresource.gpu.GPUDriverFactory",
            "param.discovery-script.path": "/usr/local/bin/flink-gpu-discovery",
            "param.discovery-script.args": f"--resource {name} {args}".rstrip(),
            f"{deployment}.config-key": device,
        }.items()
    }


def call(host: str, name: str, ledger: Path) -> Result:
    """What Flink runs of a resource, where four GPUs are seen; in a pod with the settings that are rendered for it."""
    told = settings(RENDERED / host / FILES[host][0])
    words = told[f"external-resource.{name}.param.discovery-script.args"].split()
    own = RENDERED / host / "flink-gpu-discovery.conf"
    words += ["--config", str(own if own.exists() else "/dev/null"), "--ledger", str(ledger)]
    return run(told[f"external-resource.{name}.amount"], *words, "--backend", "simulated:4")


def test_as_many_hosts_are_rendered_as_are_looked_at_and_nothing_lies_beside_their_files() -> None:
    found = {str(path.relative_to(RENDERED)) for path in RENDERED.rglob("*") if not path.is_dir()}
    assert found == {f"{host}/{name}" for host, (first, others) in FILES.items() for name in (first, *others)}


@pytest.mark.parametrize("host", FILES)
def test_flinks_file_says_what_is_asked_for_and_keeps_what_the_operator_has(host: str) -> None:
    path = RENDERED / host / FILES[host][0]
    theirs = OPERATORS / host / path.name
    before = settings(theirs) if theirs.exists() else {}
    others = [name for name in before.get(NAMES, "").split(";") if name and name not in RESOURCES[host]]
    assert settings(path) == {**before, **wanted(host), NAMES: ";".join([*others, *RESOURCES[host]])}
    if before:
        assert path.stat().st_mode & 0o777 == 0o640
        comments = [line for line in theirs.read_text().splitlines() if line.startswith("#")]
        assert comments == [line for line in path.read_text().splitlines() if line.startswith("#")]


def test_what_else_an_operator_has_there_stays() -> None:
    for path in OPERATORS.rglob("*.properties"):
        assert (RENDERED / path.relative_to(OPERATORS)).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("host", FILES)
def test_the_script_takes_the_arguments_and_gives_as_many_gpus_as_flink_asks_for(host: str, tmp_path: Path) -> None:
    given = [call(host, name, tmp_path / "ledger") for name in RESOURCES[host]]
    assert [(done.code, done.err) for done in given] == [(0, "")] * len(given)
    assert [len(done.out.split(",")) for done in given] == [amount for amount, _, _ in RESOURCES[host].values()]
    held = json.loads(run("status", "--json", "--ledger", str(tmp_path / "ledger")).out)["records"]
    assert len({record["uuid"] for record in held}) == sum(amount for amount, _, _ in RESOURCES[host].values())


@pytest.mark.parametrize("host", KUBERNETES)
def test_a_pod_tolerates_the_devices_that_it_asks_for_and_the_operator_gets_the_same_settings(host: str) -> None:
    deployment = yaml.safe_load((RENDERED / host / "flink-deployment.yaml").read_text())["spec"]
    pod = yaml.safe_load((RENDERED / host / "pod-template.yaml").read_text())
    devices = {device for _, _, device in RESOURCES[host].values()}
    assert {each["key"] for each in pod["spec"]["tolerations"]} == devices
    assert [each["name"] for each in pod["spec"]["containers"]] == ["flink-main-container"]
    assert deployment["taskManager"]["podTemplate"] == pod
    assert deployment["flinkConfiguration"] == {**wanted(host), NAMES: ";".join(RESOURCES[host])}


def test_the_settings_of_the_script_in_an_image_are_the_hosts_own() -> None:
    told = {}
    for host in KUBERNETES:
        parser = configparser.ConfigParser()
        parser.read(RENDERED / host / "flink-gpu-discovery.conf")
        told[host] = dict(parser["flink-gpu-discovery"])
    assert (told["kubernetes-1.19.3"]["deadline"], told["kubernetes-2.3.0"]["deadline"]) == ("5", "8")
    assert told["kubernetes-2.0.2"]["coordinate"] == "yes"
    assert "coordinate" not in told["kubernetes-2.3.0"]


@pytest.mark.parametrize("host", YARN)
def test_the_page_for_yarn_declares_the_resource_that_flink_asks_for_and_agrees_with_itself(host: str) -> None:
    """Its pieces of Hadoop's files are well-formed, and what two of them say is the same."""
    page = (RENDERED / host / "yarn-nodemanager.md").read_text()
    properties = {
        str(each.findtext("name")): str(each.findtext("value"))
        for piece in _XML.findall(page)
        for each in ElementTree.fromstring(f"<configuration>{piece}</configuration>").iter("property")
    }
    (piece,) = _INI.findall(page)
    executor = configparser.ConfigParser()
    executor.read_string(f"[top]\n{piece}")
    device = settings(RENDERED / host / FILES[host][0])["external-resource.gpu.yarn.config-key"]

    assert properties["yarn.resource-types"] == properties["yarn.nodemanager.resource-plugins"] == device
    assert int(properties[f"yarn.nodemanager.resource-type.{device}"]) > 0
    assert executor.getboolean("gpu", "module.enabled")
    linux = "yarn.nodemanager.linux-container-executor"
    assert executor["top"][f"{linux}.group"] == properties[f"{linux}.group"]
    assert executor["cgroups"]["root"] == properties[f"{linux}.cgroups.mount-path"]
    assert executor["cgroups"]["yarn-hierarchy"] == properties[f"{linux}.cgroups.hierarchy"]


@pytest.mark.timeout(_SECONDS)
def test_the_same_is_rendered_without_a_network_where_nothing_else_can_be_written(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make all other folders read-only")
    shutil.copytree(OPERATORS, tmp_path / "rendered")
    inventories = [f"--inventory={path}/" for path in (ROOT / "molecule/shared/inventory", SCENARIO / "inventory")]
    done = subprocess.run(
        [
            *("unshare", "--mount", "--net", "sh", "-ec", _SEALED, "sh", str(tmp_path)),
            *(str(BIN / "ansible-playbook"), *inventories, "--extra-vars=flink_gpu_hosts=clients"),
            "flinkops.gpu.render_conf",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            **dict.fromkeys(
                ("ANSIBLE_HOME", "ANSIBLE_REMOTE_TEMP", "TMPDIR", "MOLECULE_EPHEMERAL_DIRECTORY"), str(tmp_path)
            ),
            "TASK_RESULTS_FILE": str(tmp_path / "results"),
        },
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stays writable" not in done.stderr
    assert _contents(tmp_path / "rendered") == _contents(RENDERED)


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
