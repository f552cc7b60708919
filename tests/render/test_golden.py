"""What is rendered for each version and deployment is as it was reviewed, and is what was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf

from tests.render.golden import CASES, GOLDEN, PLAYED, VERSIONS, cases_of, render_all, wanted

FORMATS = {"flink-conf.yaml": "flink-conf", "config.yaml": "config-yaml"}
FOLDERS = [GOLDEN / version / case for version in VERSIONS for case in cases_of(version)]
PODS = sorted(path for folder in FOLDERS for path in folder.glob("pod-template.yaml"))


def texts(folder: Path) -> dict[str, dict[str, str]]:
    """Every file of the cases that are played, by version and case."""
    return {
        f"{version}/{case}": {path.name: path.read_text() for path in sorted((folder / version / case).iterdir())}
        for version, case in PLAYED
    }


def name_of(path: Path) -> str:
    return str(path.relative_to(GOLDEN))


@pytest.mark.timeout(120)
def test_what_is_rendered_is_as_the_golden_files_say(tmp_path: Path) -> None:
    assert texts(render_all(tmp_path, PLAYED)) == texts(GOLDEN)
    assert {case for _, case in PLAYED} == set(CASES)
    assert {version for version, _ in PLAYED} == {path.name for path in GOLDEN.iterdir()}


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_settings_file_holds_exactly_what_was_asked_for(folder: Path) -> None:
    (path,) = (folder / name for name in FORMATS if (folder / name).exists())
    settings, file_format = wanted(folder.name), FORMATS[path.name]
    reading = flink_conf.read(path.read_bytes(), file_format)

    names = settings["external-resources"].split(";")
    read = {**reading.settings, "external-resources": ";".join(reading.resources)}
    assert (read, reading.resources, reading.warnings) == (settings, names, [])
    assert flink_conf.merge(path.read_bytes(), file_format, settings) == path.read_bytes()


@pytest.mark.parametrize("path", PODS, ids=name_of)
@pytest.mark.parametrize("mounted", [False, True], ids=["script-in-the-image", "script-of-the-node"])
def test_a_pod_template_is_a_pod_that_gets_along_with_what_flink_adds(path: Path, mounted: bool) -> None:
    text = path.read_text()
    pod: dict[str, Any] = yaml.safe_load(text.replace("# volume", "volume") if mounted else text)
    (container,) = pod["spec"]["containers"]
    devices = {value for key, value in wanted(path.parent.name).items() if key.endswith(".kubernetes.config-key")}

    assert (pod["apiVersion"], pod["kind"], container["name"]) == ("v1", "Pod", "flink-main-container")
    assert {toleration["key"] for toleration in pod["spec"]["tolerations"]} == devices
    mounts = [(mount["name"], mount["readOnly"]) for mount in container.get("volumeMounts", [])]
    assert mounts == [(volume["name"], True) for volume in pod["spec"].get("volumes", [])]
    assert bool(mounts) == mounted


@pytest.mark.parametrize("path", PODS, ids=name_of)
def test_a_flink_deployment_holds_the_settings_as_texts_and_the_same_pod(path: Path) -> None:
    deployment: dict[str, Any] = yaml.safe_load((path.parent / "flink-deployment.yaml").read_text())
    spec = deployment["spec"]

    assert (deployment["apiVersion"], deployment["kind"]) == ("flink.apache.org/v1beta1", "FlinkDeployment")
    assert spec["flinkConfiguration"] == wanted(path.parent.name)
    assert spec["taskManager"] == {"podTemplate": yaml.safe_load(path.read_text())}
