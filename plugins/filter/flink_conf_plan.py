"""Filters of the role: what has to become of the files that the module ``flink_conf`` has found, and what ails them.

What they do is in ``plugin_utils/flink_conf_plan.py`` and ``flink_conf_doctor.py``.
"""

from __future__ import annotations

import base64
import dataclasses
import posixpath
from collections.abc import Callable
from typing import Any

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf, flink_conf_doctor
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import AUTO
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_notes import parse
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_plan import Folder, Plan, clearing, merging


def flink_conf_written(notes: list[str]) -> list[str]:
    """The files that the role wrote, from the notes in its record."""
    return sorted({note.path for note in parse(notes)})


def flink_conf_plan(
    found: dict[str, Any],
    wanted: dict[str, str],
    notes: list[str],
    format: str = AUTO,  # noqa: A002
    version: str = "",
    make: bool = False,
) -> dict[str, Any]:
    """What the file becomes that counts among those which the module ``flink_conf`` has found."""
    fault = found["fault"]
    if not fault and not make:
        fault = f"flink_gpu_conf_dir: {found['folder']} is no folder here; install Flink first, or leave it empty"
    if not found["found"] and fault:
        return _described(Plan(found["folder"], fault=fault), found)
    folder = Folder(found["folder"], _contents(found), found["version"], version)
    return _described(merging(folder, format, wanted, notes, make=make), found)


def flink_conf_clearances(results: list[dict[str, Any]], notes: list[str]) -> list[dict[str, Any]]:
    """What becomes of files that are no longer used, each found by a loop over the paths that the role wrote."""
    plans = []
    for found in results:
        path = found["item"]
        name = posixpath.basename(path)
        # Behind a link that took its place lies another one, which may be in use.
        content = _contents(found).get(name) if posixpath.join(found["folder"], name) == path else None
        unread = found["fault"] and not found["found"]
        plans.append(_described(Plan(path, fault=found["fault"]) if unread else clearing(path, content, notes), found))
    return plans


def flink_conf_findings(
    content: str, plan: dict[str, Any], found: dict[str, Any], wanted: dict[str, str], **place: Any
) -> dict[str, list[str]]:
    """What the doctor says of the content of the file that the plan names."""
    where = flink_conf_doctor.Place(
        path=plan["path"], other_files=[name for name in _contents(found) if name != plan["name"]], **place
    )
    try:
        reading = flink_conf.read(base64.b64decode(content), plan["format"])
    except FlinkConfError as error:
        return {"problems": [f"{where.path}: {error}"], "warnings": []}
    warnings = [f"{where.path}: {text}" for text in reading.warnings]
    return {
        "problems": flink_conf_doctor.problems(reading.settings, reading.resources, wanted, where),
        "warnings": warnings + flink_conf_doctor.warnings(reading.settings, reading.resources, wanted, where),
    }


def flink_gpu_overcommitted(wanted: dict[str, str], gpus: int, task_managers: int) -> list[str]:
    """A warning if the TaskManagers of a host ask for more GPUs than it has."""
    return flink_conf_doctor.overcommitted(wanted, gpus, task_managers)


def _described(plan: Plan, found: dict[str, Any]) -> dict[str, Any]:
    """A plan for Ansible, with what the module needs to carry it out."""
    name = posixpath.basename(plan.path) if plan.format else ""
    if plan.differs and found["fault"]:  # it can be read, but not replaced
        plan = dataclasses.replace(plan, differs=False, made=[], unmade=[], fault=found["fault"])
    return {
        **dataclasses.asdict(plan),
        "content": base64.b64encode(plan.content).decode("ascii"),
        "name": name,
        "folder": found["folder"],
        "sha256": found["files"].get(name, {}).get("sha256", ""),
    }


def _contents(found: dict[str, Any]) -> dict[str, bytes]:
    """The files that are there, by their names."""
    return {name: base64.b64decode(file["content"]) for name, file in found["files"].items() if file["exists"]}


class FilterModule:
    """The filters by their names."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """All of them."""
        functions = (
            flink_conf_written,
            flink_conf_plan,
            flink_conf_clearances,
            flink_conf_findings,
            flink_gpu_overcommitted,
        )
        return {function.__name__: function for function in functions}
