"""What the module found, and what the role does with it."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

from ansible_collections.flinkops.gpu.plugins.filter.flink_conf_plan import (
    flink_conf_clearances,
    flink_conf_plan,
    flink_conf_written,
)
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

WANTED = wanted_settings([Resource("gpu", 2)])
READ_ONLY = "/c is on a read-only file system"


def found(content: bytes | None, *, fault: str = "", folder: str = "/c", read: bool = True) -> dict[str, Any]:
    """The module's answer for a folder with a config.yaml."""
    exists = content is not None
    file = {"exists": exists, "content": b64encode(content or b"").decode(), "sha256": "abc" if exists else ""}
    nothing = {"exists": False, "content": "", "sha256": ""}
    return {
        "found": read,
        "fault": fault,
        "folder": folder,
        "home": "/",
        "version": "2.3.0",
        "files": {"config.yaml": file, "flink-conf.yaml": nothing},
    }


def test_a_plan_has_what_the_module_needs() -> None:
    plan = flink_conf_plan(found(b"# ours\n"), WANTED, [])
    assert {key: plan[key] for key in ("folder", "name", "sha256", "differs", "fault")} == {
        "folder": "/c",
        "name": "config.yaml",
        "sha256": "abc",
        "differs": True,
        "fault": "",
    }
    assert b64decode(plan["content"]).startswith(b"# ours\nexternal-resources: [gpu]\n")


def test_a_folder_that_is_not_there_is_a_fault_unless_it_is_made() -> None:
    missing = found(None, read=False)
    assert flink_conf_plan(missing, WANTED, [])["fault"].startswith("flink_gpu_conf_dir: /c is no folder here")
    made = flink_conf_plan(missing, WANTED, [], make=True)
    assert (made["fault"], made["name"], made["differs"]) == ("", "config.yaml", True)


def test_what_can_not_be_read_is_a_fault() -> None:
    unread = found(None, fault="/c is a link of uid 7", read=False)
    assert flink_conf_plan(unread, WANTED, [], make=True)["fault"] == "/c is a link of uid 7"
    notes = flink_conf_plan(found(b""), WANTED, [])["made"]
    (cleared,) = flink_conf_clearances([{**unread, "item": "/c/config.yaml"}], notes)
    assert (cleared["fault"], cleared["unmade"]) == ("/c is a link of uid 7", [])


def test_what_can_not_be_written_is_a_fault_only_where_it_would_be() -> None:
    first = flink_conf_plan(found(b"", fault=READ_ONLY), WANTED, [])
    assert (first["fault"], first["differs"], first["made"]) == (READ_ONLY, False, [])
    content = b64decode(first["content"])
    notes = flink_conf_plan(found(b""), WANTED, [])["made"]
    assert flink_conf_plan(found(content, fault=READ_ONLY), WANTED, notes)["fault"] == ""


def test_a_path_that_leads_to_another_file_by_now_is_forgotten() -> None:
    notes = flink_conf_plan(found(b""), WANTED, [])["made"]
    content = b64decode(flink_conf_plan(found(b""), WANTED, [])["content"])
    assert flink_conf_written(notes) == ["/c/config.yaml"]
    here, elsewhere = (
        flink_conf_clearances([{**found(content, folder=folder), "item": "/c/config.yaml"}], notes)[0]
        for folder in ("/c", "/d")
    )
    assert (here["differs"], elsewhere["differs"]) == (True, False)
    assert here["unmade"] == elsewhere["unmade"] == notes
