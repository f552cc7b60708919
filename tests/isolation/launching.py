"""How a command is started in a lab: in cgroups, in the namespace, as a user, without capabilities. Its PID stays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.isolation.cgroup import Cgroup
from tests.support.script import PATH

# The words up to "--" are cgroup.procs files to write itself to.
_JOIN = 'set -e; while [ "$1" != -- ]; do echo $$ >"$1"; shift; done; shift; exec "$@"'


def launch_words(
    words: Sequence[str],
    *,
    enter: Sequence[str],
    uid: int = 0,
    env: Mapping[str, str] | None = None,
    cwd: str = "/",
    cgroup: Cgroup | None = None,
    capabilities: Iterable[str] = (),
) -> list[str]:
    """Each step replaces itself by the next.

    ``capabilities`` are lost for good, for root and through sudo as well; named as setpriv does, say ``sys_admin``.
    The environment is PATH and ``env``, nothing else. A user's group has the user's number, and is the only one.
    """
    files = [str(folder / "cgroup.procs") for folder in cgroup.folders] if cgroup else []
    variables = {"PATH": PATH, **(env or {})}
    return [
        *("sh", "-c", _JOIN, "sh", *files, "--"),
        *enter,
        *_privileges(uid, sorted(capabilities)),
        *("env", "-i", f"--chdir={cwd}"),
        *(f"{name}={value}" for name, value in variables.items()),
        *words,
    ]


def _privileges(uid: int, lost: Sequence[str]) -> list[str]:
    options = []
    if lost:
        sets = ",".join(f"-{name}" for name in lost)
        options += [f"--inh-caps={sets}", f"--bounding-set={sets}"]
    if uid:
        options += [f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    return ["setpriv", *options] if options else []
