"""The systemd units that run TaskManagers, and what in them would keep the script from working.

Sources: systemctl(1), systemd.exec(5), systemd.resource-control(5).
"""

from __future__ import annotations

PROPERTIES = (
    "Id",
    "LoadState",
    "ActiveEnterTimestampMonotonic",
    "MainPID",
    "User",
    "Delegate",
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateUsers",
    "ProtectControlGroups",
    "ProtectSystem",
    "ReadOnlyPaths",
    "TemporaryFileSystem",
)
DROP_IN = "50-flink-gpu.conf"
# What keeps sudo, the device nodes or the cgroup tree from a confinement (docs/security.md).
_IN_THE_WAY = ("Delegate", "NoNewPrivileges", "PrivateDevices", "PrivateUsers", "ProtectControlGroups")
_OFF = ("", "no")
_INSTANCE = "flink-gpu-probe"


def probe_name(unit: str) -> str:
    """What to ask systemd about: of a template ``x@.service`` an instance, which need not run."""
    name, dot, kind = unit.rpartition(".")
    return f"{name}{_INSTANCE}{dot}{kind}" if name.endswith("@") else unit


def pattern(unit: str) -> str:
    """What matches the unit, or a template's instances, in ``systemctl list-units``."""
    name, dot, kind = unit.rpartition(".")
    return f"{name}*{dot}{kind}" if name.endswith("@") else unit


def covers(unit: str, name: str) -> bool:
    """Whether a unit of that name is this one, or an instance of this template."""
    start, _, end = pattern(unit).partition("*")
    return name.startswith(start) and name.endswith(end) if end else name == unit


def parse(text: str) -> list[dict[str, str]]:
    """The properties of each unit, as ``systemctl show`` prints them: blocks with a blank line between."""
    blocks = [block for block in text.split("\n\n") if block.strip()]
    return [dict(line.partition("=")[::2] for line in block.splitlines() if "=" in line) for block in blocks]


def describe(unit: str, shown: dict[str, str], *, isolated: bool, users: list[str]) -> dict[str, object]:
    """What the role has to know of a unit.

    ``hindrances``: what would keep its TaskManager from its GPUs, a sentence each.
    ``sandboxed``: whether the ledger's folder is read-only for it unless ``ReadWritePaths=`` says otherwise.
    """
    return {
        "found": shown.get("LoadState") == "loaded",
        "user": shown.get("User") or "root",
        "sandboxed": shown.get("ProtectSystem") == "strict" or _covers_run(shown.get("ReadOnlyPaths", "")),
        "hindrances": [f"{unit}: {text}" for text in (*_foreign_user(shown, users), *_obstacles(shown, isolated))],
    }


def _foreign_user(shown: dict[str, str], users: list[str]) -> list[str]:
    user = shown.get("User") or "root"
    if shown.get("LoadState") != "loaded" or user in ("root", *users):
        return []
    return [f"User={user} is not among flink_gpu_user and flink_gpu_extra_users ({', '.join(users)})"]


def _obstacles(shown: dict[str, str], isolated: bool) -> list[str]:
    if not isolated:
        return []
    is_root = (shown.get("User") or "root") == "root"
    found = []
    for name in _IN_THE_WAY:
        value = shown.get(name, "")
        harmless = name == "NoNewPrivileges" and is_root  # root needs no sudo
        if value not in _OFF and not harmless:
            found.append(f"{name}={value} keeps it from being confined (docs/security.md)")
    return found


def _covers_run(paths: str) -> bool:
    return any(path.lstrip("-+") in ("/", "/run", "/run/flink-gpu-discovery") for path in paths.split())
