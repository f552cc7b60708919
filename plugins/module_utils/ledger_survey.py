"""Who holds GPUs on a host, as the ledgers of both modes have it, and whose the folder of coordination is."""

from __future__ import annotations

import grp
import json
import os
import pwd
import stat
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Run = Callable[[list[str]], tuple[int, str, str]]

SCRIPT = "/opt/flink-gpu-discovery/current/bin/flink-gpu-discovery"
FOLDER = "/run/flink-gpu-discovery"
LEDGERS = {"coordination": f"{FOLDER}/ledger", "isolation": f"{FOLDER}/root/ledger"}


def holders(run: Run) -> list[dict[str, Any]]:
    """Who holds GPUs by either ledger; an entry with an ``error`` for a ledger that can't be read."""
    found: list[dict[str, Any]] = []
    for mode, path in LEDGERS.items():
        if _counts(mode, path):
            found += _read(run, mode, path) if os.path.exists(SCRIPT) else [_unreadable(mode, path, _no_script(path))]
    return found


def _counts(mode: str, path: str) -> bool:
    """In coordination mode its user may plant what looks like root's ledger, in a folder that is not root's."""
    if not os.path.lexists(path):
        return False
    folder = os.lstat(os.path.dirname(path))
    return mode != "isolation" or (stat.S_ISDIR(folder.st_mode) and folder.st_uid == 0)


def folder_owner() -> str:
    """User and group of the ledgers' folder, as ``flink:flink``; empty where there is none."""
    try:
        found = os.lstat(FOLDER)
    except FileNotFoundError:
        return ""
    return f"{_user(found.st_uid)}:{_group(found.st_gid)}" if stat.S_ISDIR(found.st_mode) else ""


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _group(gid: int) -> str:
    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _no_script(path: str) -> str:
    return (
        f"{path} is there, but {SCRIPT}, which could tell who holds GPUs by it, is not: play site.yml with the"
        f" settings that the host had, or remove {path} once no TaskManager runs"
    )


def _read(run: Run, mode: str, path: str) -> list[dict[str, Any]]:
    words = [
        sys.executable,
        "-ISB",  # nothing is compiled here: root's bytecode would stay in a release that lacks its own
        SCRIPT,
        "status",
        "--json",
        "--config",
        os.devnull,
        "--ledger",
        path,
        *(["--isolate"] if mode == "isolation" else []),
    ]
    code, out, errors = run(words)
    try:
        records = json.loads(out)["records"] if code == 0 else []
    except (ValueError, KeyError) as error:
        code, errors = 1, f"its answer can't be read: {error!r}"
    if code != 0:
        return [_unreadable(mode, path, errors.strip() or f"exit code {code}")]
    return [_holder(mode, path, record) for record in records]


def _unreadable(mode: str, path: str, error: str) -> dict[str, Any]:
    return {"mode": mode, "ledger": path, "error": error}


def _holder(mode: str, path: str, record: dict[str, Any]) -> dict[str, Any]:
    owner = record["owner"]
    return {
        "mode": mode,
        "ledger": path,
        "gpu": record["uuid"],
        "pid": owner["pid"],
        "command": owner["command"],
        "alive": owner["liveness"] != "dead",
    }
