"""What is rendered for each version and deployment, as files in ``golden/``.

``PYTHONPATH=.venv/collections .venv/bin/python -m tests.render.golden`` writes them anew; read the difference before it
is committed. On the version depends no more than which file is rendered, so those that read ``config.yaml`` share one
folder through symbolic links.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ansible_collections.flinkops.gpu.plugins.filter.flink_conf import flink_gpu_settings

from tests.render.rendering import render

GOLDEN = Path(__file__).with_name("golden")
VERSIONS = ("1.18.1", "2.3.0")
LINKED = ("1.19.3", "1.20.5", "2.0.2")  # to 2.3.0

CASES: dict[str, dict[str, Any]] = {
    "standalone": {},
    "standalone-flip108": {"flink_gpu_driver_protocol": "flip108"},
    "yarn": {"flink_gpu_deployment": "yarn"},
    "yarn-amd": {"flink_gpu_deployment": "yarn", "flink_gpu_vendor": "amd"},
    "yarn-flip108": {"flink_gpu_deployment": "yarn", "flink_gpu_driver_protocol": "flip108"},
    "kubernetes": {"flink_gpu_deployment": "kubernetes"},
    "kubernetes-flip108": {"flink_gpu_deployment": "kubernetes", "flink_gpu_driver_protocol": "flip108"},
    "several-resources": {
        "flink_gpu_deployment": "kubernetes",
        "flink_gpu_vendor": "amd",
        "flink_gpu_script_args": "--debug --id uuid",
        "flink_gpu_extra_resources": [
            {"name": "1.cpx", "amount": 1, "args": "--wait=2.5", "config_key": "amd.com/cpx_nps1"},
            {"name": "true", "amount": 1, "driver_class": "org.example.Fpga", "config_key": "example.org/fpga"},
        ],
    },
}
FLAT_ONLY = ("yarn-flip108", "kubernetes-flip108")  # config.yaml is refused

# What the test renders: each case once, each version, each deployment. The rest is the same templates once more.
PLAYED = (
    ("1.18.1", "yarn-flip108"),
    ("1.18.1", "kubernetes-flip108"),
    ("1.19.3", "standalone"),
    ("1.20.5", "yarn"),
    ("2.0.2", "standalone-flip108"),
    ("2.3.0", "yarn-amd"),
    ("2.3.0", "kubernetes"),
    ("2.3.0", "several-resources"),
)


def cases_of(version: str) -> list[str]:
    """The cases that are rendered for a version."""
    return [case for case in CASES if version == VERSIONS[0] or case not in FLAT_ONLY]


def variables(case: str, version: str) -> dict[str, Any]:
    """The variables of a case, for a version of Flink."""
    return {"flink_gpu_flink_version": version, "flink_gpu_amount": 2, **CASES[case]}


def wanted(case: str) -> dict[str, str]:
    """The settings that a case asks for, as Flink is to read them."""
    asked = CASES[case]
    first = {"name": "gpu", "amount": 2, "args": asked.get("flink_gpu_script_args", "")}
    settings: dict[str, str] = flink_gpu_settings(
        [first, *asked.get("flink_gpu_extra_resources", [])],
        deployment=asked.get("flink_gpu_deployment", "standalone"),
        vendor=asked.get("flink_gpu_vendor", "nvidia"),
        protocol=asked.get("flink_gpu_driver_protocol", "released"),
    )
    return settings


def amounts(case: str) -> dict[str, str]:
    """The external resources of a case and how many of each a TaskManager has."""
    extra = CASES[case].get("flink_gpu_extra_resources", [])
    return {"gpu": "2", **{resource["name"]: str(resource["amount"]) for resource in extra}}


def render_all(folder: Path, cases: Iterable[tuple[str, str]]) -> Path:
    """Render cases for versions, in one play, into folders like those of ``golden/``."""
    made = folder / "golden"
    hosts = {
        f"{version}-{case}": {**variables(case, version), "flink_gpu_render_to": f"{made}/{version}/{case}"}
        for version, case in cases
    }
    for own in hosts.values():
        Path(own["flink_gpu_render_to"]).mkdir(parents=True)  # for the playbook to do takes longer
    render(folder, {}, hosts).must_succeed()
    return made


def main() -> None:
    """Write the golden files anew."""
    with tempfile.TemporaryDirectory() as folder:
        made = render_all(Path(folder), [(version, case) for version in VERSIONS for case in cases_of(version)])
        shutil.rmtree(GOLDEN, ignore_errors=True)
        shutil.copytree(made, GOLDEN)
    for version in LINKED:
        (GOLDEN / version).symlink_to(VERSIONS[-1])


if __name__ == "__main__":
    main()
