"""The systemd units that run TaskManagers, and what in them would keep the script from working.

Sources: systemctl(1), systemd.exec(5), systemd.resource-control(5).
"""

from __future__ import annotations

DROP_IN = "50-flink-gpu.conf"
# What keeps sudo, the device nodes or the cgroup tree from a confinement (docs/security.md).
_IN_THE_WAY = ("Delegate", "NoNewPrivileges", "PrivateDevices", "PrivateUsers", "ProtectControlGroups")
# What systemd enforces by seccomp. For another user than root it sets NoNewPrivileges= then, which ``systemctl show``
# doesn't tell; from version 255 on it leaves the process capabilities by which a confinement could be undone.
_BY_SECCOMP = (
    "DynamicUser",  # not by seccomp, but to the same effect
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "ProtectClock",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
    "SystemCallArchitectures",
    "SystemCallFilter",
    "SystemCallLog",
)
PROPERTIES = (
    "Id",
    "Names",
    "LoadState",
    "ActiveEnterTimestampMonotonic",
    "MainPID",
    "User",
    "ProtectSystem",
    "ReadOnlyPaths",
    *_IN_THE_WAY,
    *_BY_SECCOMP,
)
_OFF = ("", "no", "~")
# Of a list that allows, none at all is the strictest.
_ONLY_OFF = {"RestrictAddressFamilies": ("~",)}
_LONGEST_VALUE = 30
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


def by_name(blocks: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    """What systemd shows of units, by each of their names: aliases, too."""
    return {name: block for block in blocks for name in block["Names"].split()}


def real_name(unit: str, shown: dict[str, str]) -> str:
    """What a unit that is named by an alias is called itself."""
    told = shown.get("Id", probe_name(unit))
    return told.replace(f"@{_INSTANCE}.", "@.") if told != probe_name(unit) else unit


def describe(unit: str, shown: dict[str, str], *, isolated: bool, users: list[str]) -> dict[str, object]:
    """What the role has to know of a unit.

    ``hindrances``: what would keep its TaskManager from its GPUs, a sentence each; ``warnings``: why it can't start.
    ``sandboxed``: whether the ledger's folder is read-only for it unless ``ReadWritePaths=`` says otherwise.
    """
    hindrances = (*_alias(unit, shown), *_foreign_user(shown, users), *_obstacles(shown, isolated))
    return {
        "found": shown.get("LoadState") == "loaded",
        "warnings": [f"{unit}: {text}" for text in _not_loaded(shown)],
        "sandboxed": shown.get("ProtectSystem") == "strict" or _covers_run(shown.get("ReadOnlyPaths", "")),
        "hindrances": [f"{unit}: {text}" for text in hindrances],
    }


def _not_loaded(shown: dict[str, str]) -> list[str]:
    state = shown.get("LoadState", "not-found")
    if state == "loaded":
        return []
    if state == "not-found":
        return ["systemd knows no such unit yet"]
    return [f"is {state}, so systemd can't start it; see 'systemctl status'"]


def _alias(unit: str, shown: dict[str, str]) -> list[str]:
    real = real_name(unit, shown)
    return [] if real == unit else [f"is another name of {real}; set that one in flink_gpu_taskmanager_units"]


def _foreign_user(shown: dict[str, str], users: list[str]) -> list[str]:
    user = shown.get("User") or "root"
    if shown.get("LoadState") != "loaded" or user in ("root", *users):
        return []
    return [f"User={user} is not among flink_gpu_user and flink_gpu_extra_users ({', '.join(users)})"]


def _obstacles(shown: dict[str, str], isolated: bool) -> list[str]:
    if not isolated:
        return []
    needs_sudo = (shown.get("User") or "root") != "root"
    names = [name for name in _IN_THE_WAY if needs_sudo or name != "NoNewPrivileges"]
    names += _BY_SECCOMP if needs_sudo else ()
    return [
        f"{name}={_quote(shown[name])} keeps it from being confined (docs/security.md)"
        for name in names
        if _is_set(name, shown)
    ]


def _is_set(name: str, shown: dict[str, str]) -> bool:
    """An older systemd doesn't show what it doesn't know."""
    return name in shown and shown[name] not in _ONLY_OFF.get(name, _OFF)


def _quote(value: str) -> str:
    """A filter of system calls is shown as hundreds of them."""
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…"


def _covers_run(paths: str) -> bool:
    return any(path.lstrip("-+") in ("/", "/run", "/run/flink-gpu-discovery") for path in paths.split())
