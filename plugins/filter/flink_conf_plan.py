"""Filters of the role: what has to become of the files that the module ``flink_conf`` has found, and what ails them.

What they do is in ``plugin_utils/flink_conf_plan.py`` and ``flink_conf_doctor.py``.
"""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable
from typing import Any

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf, flink_conf_doctor
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import AUTO, FILES
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_plan import (
    Folder,
    Plan,
    clearing,
    merging,
    written,
)


def flink_conf_written(notes: list[str]) -> dict[str, list[str]]:
    """The names that the role wrote, by the file's path, from the notes in its record."""
    return written(notes)


def flink_conf_plan(
    found: dict[str, Any],
    wanted: dict[str, str],
    notes: list[str],
    format: str = AUTO,  # noqa: A002
    version: str = "",
    make: bool = False,
) -> dict[str, Any]:
    """What the file becomes that counts among those which the module ``flink_conf`` has found."""
    if not found["found"] and not make:
        fault = f"flink_gpu_conf_dir: {found['folder']} is no folder here; install Flink first, or leave it empty"
        return _described(Plan(found["folder"], fault=fault), found)
    folder = Folder(found["folder"], _contents(found), found["version"], version)
    return _described(merging(folder, format, wanted, notes, make=make), found)


def flink_conf_clearances(results: list[dict[str, Any]], notes: list[str], used: str = "") -> list[dict[str, Any]]:
    """What becomes of files that are no longer used, each found by a loop over the paths that the role wrote.

    ``used`` is where the file lies that still is in use, perhaps by another path.
    """
    plans = []
    for found in results:
        path = found["item"]
        file = found["files"][path.rpartition("/")[2]]
        content = base64.b64decode(file["content"]) if file["exists"] and file["place"] != used else None
        plans.append(_described(clearing(path, content, written(notes)[path]), found))
    return plans


def flink_conf_findings(
    plan: dict[str, Any],
    found: dict[str, Any],
    content: str,
    wanted: dict[str, str],
    version: str,
    deployment: str,
    **place: Any,
) -> dict[str, list[str]]:
    """What the doctor says of the content of the file that the plan names."""
    where = flink_conf_doctor.Place(
        file=plan["name"],
        other_file=" ".join(name for name in _contents(found) if name != plan["name"]),
        version=version or found["version"],
        has_gpu_plugin=_has_gpu_plugin(found, deployment),
        **place,
    )
    reading = flink_conf.read(base64.b64decode(content), plan["format"])
    return {
        "problems": flink_conf_doctor.problems(reading.settings, reading.resources, wanted, where),
        "warnings": flink_conf_doctor.warnings(reading.settings, wanted, where),
    }


def _has_gpu_plugin(found: dict[str, Any], deployment: str) -> bool | None:
    """On Kubernetes it is the image's; elsewhere None if Flink itself was not found."""
    if deployment == "kubernetes":
        return True
    return bool(found["has_gpu_plugin"]) if found["version"] else None


def _described(plan: Plan, found: dict[str, Any]) -> dict[str, Any]:
    """A plan for Ansible, with what the module needs to carry it out."""
    name = FILES.get(plan.file_format, "")
    file = found["files"].get(name, {})
    return {
        **dataclasses.asdict(plan),
        "format": plan.file_format,
        "content": base64.b64encode(plan.content).decode("ascii"),
        "name": name,
        "folder": found["folder"],
        "sha256": file.get("sha256", ""),
        "place": file.get("place", ""),
    }


def _contents(found: dict[str, Any]) -> dict[str, bytes]:
    """The files that are there, by their names."""
    return {name: base64.b64decode(file["content"]) for name, file in found["files"].items() if file["exists"]}


class FilterModule:
    """The filters by their names."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """All of them."""
        functions = (flink_conf_written, flink_conf_plan, flink_conf_clearances, flink_conf_findings)
        return {function.__name__: function for function in functions}
