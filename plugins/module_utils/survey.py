"""What the role must know of a host before it changes anything there; read-only.

``look`` needs one process and a few short commands, so that a host is asked once instead of a dozen times.
"""

from __future__ import annotations

import grp
import os
import pwd
import time

from ansible_collections.flinkops.gpu.plugins.module_utils import accounts, cgroup_layout, ledger_survey, unit_survey
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError
from ansible_collections.flinkops.gpu.plugins.module_utils.record_made import note
from ansible_collections.flinkops.gpu.plugins.module_utils.record_store import Store
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import ReleaseError
from ansible_collections.flinkops.gpu.plugins.module_utils.release_python import choose

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Run = Callable[[list[str]], tuple[int, str, str]]

_RECORD = "/opt/flink-gpu-discovery/record.json"
_PROGRAMS = {"sudo": "/usr/bin/sudo", "visudo": "/usr/sbin/visudo"}
_BUS_POLICIES = ("/usr/share/dbus-1/system.d", "/etc/dbus-1/system.d")


def look(
    run: Run, *, units: list[str], users: list[str], group: str, isolated: bool, python: str | None
) -> dict[str, Any]:
    """Everything in one answer; ``run`` starts a command and returns its exit code, output and errors."""
    has_systemd = os.path.isdir("/run/systemd/system")
    return {
        "systemd": has_systemd,
        "bus": has_systemd and any(os.path.isdir(path) for path in _BUS_POLICIES),
        "programs": {name: os.path.exists(path) for name, path in _PROGRAMS.items()},
        "python_lacks": "" if python is None else _lacks(python),
        "missing_users": [name for name in users if not _is_known(pwd.getpwnam, name)],
        "group_exists": _is_known(grp.getgrnam, group),
        "outsiders": [name for name in users[1:] if _is_outside(name, group)],
        "cgroup": cgroup_layout.look(),
        "persistenced": _persistenced(run) if has_systemd else {},
        "units": _units(run, units, users, isolated) if has_systemd else {},
        "installed": os.path.exists(ledger_survey.SCRIPT),
        **_made(),
        "holders": ledger_survey.holders(run),
        "folder_owner": ledger_survey.folder_owner(),
    }


def _made() -> dict[str, Any]:
    """What the role made, and the accounts among it; ``record_fault`` says why its record can't be read."""
    made: list[str] = []
    fault = ""
    try:
        made = note(Store(_RECORD), [], [], check=True).made
    except FilingError as error:
        fault = str(error)
    own = accounts.look(made)
    busy = [name for name in own["users"] if _has_processes(name)]
    return {"made": made, "record_fault": fault, "accounts": {**own, "busy": busy}}


def _lacks(python: str) -> str:
    try:
        choose(python)
    except (ReleaseError, FilingError) as error:
        return str(error)
    return ""


def _is_known(lookup: Callable[[str], object], name: str) -> bool:
    try:
        lookup(name)
    except KeyError:
        return False
    return True


def _is_outside(user: str, group: str) -> bool:
    """Whether a user who is there is not in the group."""
    if not _is_known(pwd.getpwnam, user):
        return False
    try:
        gid = grp.getgrnam(group).gr_gid
    except KeyError:
        return True
    return gid not in os.getgrouplist(user, pwd.getpwnam(user).pw_gid)


def _has_processes(user: str) -> bool:
    try:
        uid = pwd.getpwnam(user).pw_uid
    except KeyError:
        return False
    for entry in os.scandir("/proc"):
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                return True
        except OSError:  # it has ended
            continue
    return False


def _persistenced(run: Run) -> dict[str, bool]:
    """Whether NVIDIA's persistence daemon is there, is enabled, and runs."""
    words = ["systemctl", "show", "--property=LoadState,UnitFileState,ActiveState", "nvidia-persistenced.service"]
    (shown,) = unit_survey.parse(_succeed(run, words))
    return {
        "found": shown["LoadState"] == "loaded",
        "enabled": shown["UnitFileState"] == "enabled",
        "running": shown["ActiveState"] == "active",
    }


def _units(run: Run, units: list[str], users: list[str], isolated: bool) -> dict[str, Any]:
    """Each unit by its name in the role's variable, with those of its instances that run."""
    if not units:
        return {}
    named = unit_survey.by_name(_show(run, [unit_survey.probe_name(unit) for unit in units]))
    shown = {unit: named.get(unit_survey.probe_name(unit), {}) for unit in units}
    real = {unit: unit_survey.real_name(unit, shown[unit]) for unit in units}
    running = _running(run, list(real.values()))
    return {
        unit: {
            **unit_survey.describe(unit, shown[unit], isolated=isolated, users=users),
            "running": [_process(unit, block) for block in running if unit_survey.covers(real[unit], block["Id"])],
        }
        for unit in units
    }


def _running(run: Run, units: list[str]) -> list[dict[str, str]]:
    patterns = [unit_survey.pattern(unit) for unit in units]
    listing = _succeed(run, ["systemctl", "list-units", "--plain", "--no-legend", "--state=active", "--", *patterns])
    names = [line.split()[0] for line in listing.splitlines() if line.strip()]
    return _show(run, names) if names else []


def _process(unit: str, shown: dict[str, str]) -> dict[str, Any]:
    """A running unit; ``outdated`` if it was started before its drop-in was last written."""
    started = time.time() - time.monotonic() + int(shown.get("ActiveEnterTimestampMonotonic", "0")) / 1e6
    drop_in = f"/etc/systemd/system/{unit}.d/{unit_survey.DROP_IN}"
    try:
        written = os.stat(drop_in).st_mtime
    except OSError:
        written = 0.0
    pid = int(shown.get("MainPID", "0"))
    return {"name": shown["Id"], "main_pid": pid, "drop_in": drop_in, "outdated": written > started}


def _show(run: Run, names: list[str]) -> list[dict[str, str]]:
    words = ["systemctl", "show", f"--property={','.join(unit_survey.PROPERTIES)}", "--", *names]
    return unit_survey.parse(_succeed(run, words))


def _succeed(run: Run, words: list[str]) -> str:
    code, out, errors = run(words)
    if code != 0:
        raise OSError(f"{' '.join(words[:2])} ended with {code}: {errors.strip()[:200]}")
    return out
