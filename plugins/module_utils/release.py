"""One run of the module ``flinkops.gpu.release``: look, decide, and act unless in check mode."""

from __future__ import annotations

import os

from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Plan, Wish, plan
from ansible_collections.flinkops.gpu.plugins.module_utils.release_store import Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ARGUMENTS: dict[str, dict[str, Any]] = {
    "state": {"type": "str", "choices": ["present", "absent", "rolled_back"], "default": "present"},
    "root": {"type": "path", "default": "/opt/flink-gpu-discovery"},
    "python": {"type": "str", "default": ""},
    "keep": {"type": "int", "default": 2},
    "to": {"type": "str", "default": ""},
    "pynvml": {"type": "str", "default": ""},
    "bundle_pynvml": {"type": "bool", "default": True},
    "name": {"type": "str", "default": ""},
    "manifest": {"type": "str", "default": ""},
    "archive": {"type": "path", "default": ""},
}


def run(root: str, wish: Wish, *, check: bool) -> dict[str, Any]:
    """Do it, or in check mode say what would be done; gives the module's result."""
    if os.geteuid() != 0:
        raise ReleaseError(f"this runs as uid {os.geteuid()}, but a release belongs to root: set become: true")
    store = Store(root)
    if check or not store.root.parent.is_dir():
        return _result(store, plan(store, wish))
    with store.locked() as held:
        made = plan(store, wish, held=held)
        result = _result(store, made)
        for step in () if made.lacking else made.steps:
            step.act()
    return {**result, "changed": False, "lacking": list(made.lacking)} if made.lacking else result


def _result(store: Store, made: Plan) -> dict[str, Any]:
    before, after = made.before, made.after
    return {
        "changed": bool(made.steps),
        "release": after.current,
        "current": before.current,
        "previous": made.previous,
        "releases": list(after.releases),
        "python": {"path": after.python.path, "version": after.python.version} if after.python else {},
        "actions": [words for step in made.steps for words in step.words],
        "note": made.note,
        "diff": {"before": before.text(), "after": after.text()},
    }
