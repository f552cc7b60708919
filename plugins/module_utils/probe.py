"""Whether the installed script would serve a task executor: asked as Flink asks it, as the user Flink runs as.

Nothing is changed: no GPU is asked for.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Run = Callable[[list[str]], tuple[int, str, str]]

SCRIPT = "/usr/local/bin/flink-gpu-discovery"
ROOT_SCRIPT = "/usr/local/libexec/flink-gpu-discovery-root"
_RUNUSER = ("/usr/sbin/runuser", "/sbin/runuser")  # the latter where /usr is not merged, as on bullseye
_TEST = "/usr/bin/test"
_OF_THE_DRIVER = ("driver", "nodes")


class Findings:
    """``problems`` keep a TaskManager from its GPUs, ``warnings`` don't; ``version`` and GPUs as the script told."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.version = ""
        self.gpus: list[dict[str, Any]] = []

    @property
    def healthy(self) -> int:
        """How many GPUs have no fault."""
        return len([gpu for gpu in self.gpus if not gpu["fault"]])


def look(
    run: Run,
    *,
    users: list[str],
    calls: list[list[str]],
    isolated: bool,
    expected: str,
    scripts: Sequence[str] = (),
    files: Sequence[str] = (),
) -> Findings:
    """Ask everything; ``calls`` are the arguments that Flink passes on, ``expected`` is the number of healthy GPUs.

    Empty it wants one at least; ``0`` is a host that has neither GPU nor driver. ``scripts`` are those of others, which
    the users must be able to start; ``files`` must be readable.
    """
    found = Findings()
    for user in users:
        _reach(run, found, user, scripts, files)
        for arguments in calls:
            _ask_as_flink(run, found, user, arguments, isolated)
    if found.problems:
        return found
    main_user = users[0]
    _take_inventory(run, found, main_user, expected)
    _examine(run, found, main_user, expected, isolated)
    for user in users[1:]:
        _examine_as(run, found, user, expected, isolated)
    return found


def _as(user: str, *words: str) -> list[str]:
    runuser = next(filter(os.path.exists, _RUNUSER), _RUNUSER[0])
    return [runuser, "-u", user, "--", *words]


def _reach(run: Run, found: Findings, user: str, scripts: Sequence[str], files: Sequence[str]) -> None:
    """What Flink itself opens or starts."""
    for right, paths, act in (("-x", scripts, "start"), ("-r", files, "read")):
        for path in paths:
            if run(_as(user, _TEST, right, path))[0] != 0:
                found.problems.append(f"as {user}: can't {act} {path}; see that it is there, and its mode and folders")


def _ask_as_flink(run: Run, found: Findings, user: str, arguments: list[str], isolated: bool) -> None:
    """The call of Flink's driver, for no GPU; with isolation also the way to root."""
    code, out, errors = run(_as(user, SCRIPT, "--version"))
    found.version = out.strip().rpartition(" ")[2]
    if code == 0:
        code, out, errors = run(_as(user, SCRIPT, "0", *arguments))
    if code == 0 and isolated:
        code, out, errors = run(_as(user, "/usr/bin/sudo", "-n", "--", ROOT_SCRIPT, "status"))
    if code != 0:
        found.problems.append(f"as {user}: exit code {code}: {_first_line(errors or out)}")


def _take_inventory(run: Run, found: Findings, user: str, expected: str) -> None:
    code, out, errors = run(_as(user, SCRIPT, "inventory", "--json"))
    if code != 0:
        if expected != "0":
            found.problems.append(f"GPUs can't be listed: {_first_line(errors)}")
        return
    found.gpus = json.loads(out)["gpus"]
    if expected and found.healthy != int(expected):
        found.problems.append(f"{found.healthy} of {len(found.gpus)} GPUs are healthy, {expected} expected")
    elif not expected and not found.healthy:
        found.problems.append(f"none of {len(found.gpus)} GPUs is healthy")
    found.warnings += [f"GPU {gpu['index']}: {gpu['fault']}" for gpu in found.gpus if gpu["fault"]]


def _examine_as(run: Run, found: Findings, user: str, expected: str, isolated: bool) -> None:
    """What ``doctor`` tells a further user and has not told the main one."""
    own = Findings()
    own.gpus = found.gpus
    _examine(run, own, user, expected, isolated)
    found.problems += [f"as {user}: {text}" for text in own.problems if text not in found.problems]
    found.warnings += [f"as {user}: {text}" for text in own.warnings if text not in found.warnings]


def _examine(run: Run, found: Findings, user: str, expected: str, isolated: bool) -> None:
    """What ``doctor`` says, but of the driver what is told already, or not to be there."""
    code, out, errors = run(_as(user, SCRIPT, "doctor", "--json"))
    try:
        checks = json.loads(out)["checks"]
    except (ValueError, KeyError):
        found.problems.append(f"doctor ended with {code}: {_first_line(errors)}")
        return
    if isolated and "cgroup" not in [check["check"] for check in checks]:
        found.problems.append(
            "the host's settings don't say 'isolate = yes', so TaskManagers are not confined; run site.yml"
        )
    for check in checks:
        if check["check"] in _OF_THE_DRIVER and (expected == "0" or not found.gpus):
            continue
        told = f"{check['check']}: " + "; ".join(text for text in (check["what"], check["mend"]) if text)
        if check["state"] == "fault":
            found.problems.append(told)
        elif check["state"] == "warning" and not told.startswith("driver: GPU"):
            found.warnings.append(told)


def _first_line(text: str) -> str:
    return (text.strip().splitlines() or ["it said nothing"])[0]
