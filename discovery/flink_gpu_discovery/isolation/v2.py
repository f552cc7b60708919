"""Rules on cgroup v2: a BPF device program, attached to the owner's cgroup."""

from __future__ import annotations

import errno
import os

from flink_gpu_discovery.errors import PermissionRefusedError, SystemRefusedError
from flink_gpu_discovery.isolation import bpf, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.errors import DiscoveryError
    from flink_gpu_discovery.isolation.rules import Rules

_MOST_LOOKS = 3
_MEND = "give it CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN"


def load(rules: Rules) -> int:
    """The program of ``rules``, loaded; the caller closes the descriptor."""
    try:
        return bpf.load(program.encode(program.translate(rules)))
    except OSError as error:
        raise _refused("load a device program", error) from error


def enforce(folder: str, rules: Rules) -> None:
    """Let exactly ``rules`` hold in a cgroup from now on, beside those of its ancestors.

    The new program takes the place of the old one at once, and the kernel is asked whether it did.
    """
    descriptor = load(rules)
    try:
        cgroup = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _attach(folder, cgroup, descriptor)
        finally:
            os.close(cgroup)
    except OSError as error:
        raise _refused(f"attach a device program to {folder}", error) from error
    finally:
        os.close(descriptor)


def _attach(folder: str, cgroup: int, descriptor: int) -> None:
    bpf.attach(cgroup, descriptor)
    own = bpf.program_id(descriptor)
    above = os.open(os.path.dirname(folder), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for _ in range(_MOST_LOOKS):  # systemd may be replacing its own just now
            inherited = {*bpf.query(above, effective=True)}
            attached, effective = bpf.query(cgroup), {*bpf.query(cgroup, effective=True)}
            if attached == (own,) and effective == {own, *inherited}:
                return
    finally:
        os.close(above)
    raise SystemRefusedError(
        f"{folder}: after program {own} was attached, {attached} are attached and {sorted(effective)} in force,"
        f" above it {sorted(inherited)}",
        "find out which program of an ancestor may be overridden (bpftool cgroup tree)",
    )


def _refused(action: str, error: OSError) -> DiscoveryError:
    what = f"the kernel refused to {action}: {error.strerror}"
    if error.errno in (errno.EPERM, errno.EACCES):
        return PermissionRefusedError(what, _MEND)
    if error.errno in (errno.ENOENT, errno.ENODEV):
        return SystemRefusedError(what, "something removed the cgroup meanwhile; call again")
    return SystemRefusedError(what, "it takes Linux 4.15 with CONFIG_CGROUP_BPF")
