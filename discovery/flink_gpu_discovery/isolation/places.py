"""Where an owner's confinement is, or is to be made: version 2 wherever it works, else version 1."""

from __future__ import annotations

import os

from flink_gpu_discovery.errors import DiscoveryError, SystemRefusedError, UsageError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.isolation import hierarchies
from flink_gpu_discovery.isolation.confinement import PREFIX, Confinement, is_name, name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flink_gpu_discovery.host import Host
    from flink_gpu_discovery.isolation.hierarchies import Hierarchy
    from flink_gpu_discovery.isolation.rules import Rules
    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.processes import Processes

_THREADED = ("threaded", "domain threaded", "domain invalid")
_NONE_MEND = "mount cgroup2 (and give it CAP_SYS_ADMIN, or CAP_BPF and CAP_NET_ADMIN) or the v1 devices controller"


def at(host: Host, processes: Processes, folder: str) -> Confinement:
    """The confinement that the ledger says is at ``folder``; ``SystemRefusedError`` if no hierarchy is there now."""
    for hierarchy in _usable(host):
        if folder.startswith(f"{hierarchy.mount_point}/") and ".." not in folder.split("/"):
            return Confinement(host, processes, hierarchy, folder)
    raise SystemRefusedError(f"no cgroup hierarchy is mounted above {folder}", "mount it where it was")


def choose(host: Host, processes: Processes, owner: Owner, rules: Rules) -> Confinement:
    """The confinement that a live owner is already in, or else one to be made below the cgroup that it is in.

    Nothing is changed. ``SystemRefusedError`` if neither version can be used.
    """
    name, refusals = name_of(owner), []
    present = [(hierarchy, hierarchies.folder_of(host, hierarchy, owner.pid)) for hierarchy in _usable(host)]
    for hierarchy, folder in present:
        if os.path.basename(folder) == name:
            return Confinement(host, processes, hierarchy, folder)
    for hierarchy, folder in present:
        try:
            _check(host, hierarchy, folder, rules, owner)
            return Confinement(host, processes, hierarchy, f"{folder}/{name}")
        except DiscoveryError as error:
            if isinstance(error, _ThreadedError):
                raise
            refusals.append(error)
    if not refusals:
        raise SystemRefusedError("neither cgroup2 nor the v1 devices controller is mounted", _NONE_MEND)
    whats = "; ".join([error.what for error in refusals])
    raise type(refusals[-1])(f"no device cgroup can be used: {whats}", refusals[0].mend)


def look(host: Host, owner: Owner) -> tuple[str, str, list[str]] | None:
    """Below which folder a confinement would be made, by which version, and the cgroups that may be ways out of it.

    As far as that shows without root; None if there is no hierarchy. ``SystemRefusedError`` for a threaded cgroup.
    """
    for hierarchy in _usable(host):
        folder = hierarchies.folder_of(host, hierarchy, owner.pid)
        if hierarchy.is_v2:
            _check_type(folder)
            return folder, "2", hierarchies.ancestry(hierarchy.mount_point, folder)
        _check_systemd_keeps_away(host, owner)
        return folder, "1", hierarchies.tree(hierarchy.mount_point)
    return None


class _ThreadedError(SystemRefusedError):
    """A cgroup below which no process can be confined."""


def acting_owner(host: Host, processes: Processes, caller: Owner) -> Owner:
    """The owner in whose confinement the caller is, else the caller itself.

    ``UsageError`` if that owner has ended or belongs to somebody else. Its cgroup tells who it is: only root can
    make cgroups where a confinement was proven.
    """
    for hierarchy in _usable(host):
        folder = hierarchies.folder_of(host, hierarchy, caller.pid)
        names = [name for name in folder.split("/") if is_name(name)]
        if names and names[0] != name_of(caller):
            return _named(processes, names[0], caller)
    return caller


def _named(processes: Processes, name: str, caller: Owner) -> Owner:
    mend = "start it outside of that confinement"
    owner = _live_owner(processes, name)
    if owner is None:
        raise UsageError(f"{caller} is in the confinement {name}, whose owner has ended", mend)
    if owner.uid != caller.uid:
        raise UsageError(f"{caller} of uid {caller.uid} is in the confinement of {owner} of uid {owner.uid}", mend)
    return owner


def is_named_after_live(processes: Processes, confinement: Confinement) -> bool:
    """Whether the owner that the cgroup's name tells of runs."""
    return _live_owner(processes, os.path.basename(confinement.folder)) is not None


def _live_owner(processes: Processes, name: str) -> Owner | None:
    pid, start_time = name.removeprefix(PREFIX).split("-")
    try:
        owner = processes.owner(int(pid))
    except UsageError:
        return None
    return owner if abs(owner.start_time - int(start_time)) <= 1 else None


def left_behind(host: Host, processes: Processes, known: Iterable[str]) -> list[Confinement]:
    """The cgroups under names of ours, but those that are ``known``."""
    expected = set(known)
    found = []
    for hierarchy in _usable(host):
        for folder in hierarchies.tree(hierarchy.mount_point):
            if is_name(os.path.basename(folder)) and folder not in expected:
                found.append(Confinement(host, processes, hierarchy, folder))
    return found


def _usable(host: Host) -> list[Hierarchy]:
    """Version 2 first: on a hybrid host it enforces beside version 1."""
    mounted = hierarchies.mounted(host)
    return [one for one in mounted if one.is_v2] + [one for one in mounted if "devices" in one.controllers]


def _check(host: Host, hierarchy: Hierarchy, folder: str, rules: Rules, owner: Owner) -> None:
    """Whether a confinement can be made below ``folder``, as far as that shows without making one."""
    if not os.access(folder, os.W_OK):
        raise SystemRefusedError(
            f"{folder} is not writable", "remount the cgroup tree read-write (ProtectControlGroups=no in the unit)"
        )
    if hierarchy.is_v2:
        from flink_gpu_discovery.isolation import v2

        _check_type(folder)
        os.close(v2.load(rules))
    else:
        _check_systemd_keeps_away(host, owner)


def _check_systemd_keeps_away(host: Host, owner: Owner) -> None:
    """On v1 systemd moves a unit's processes between ``devices`` cgroups, unless the unit has one of its own.

    It does so whenever a neighbour with a device policy comes or goes, and never looks into children of its own cgroup
    (``cg_migrate_v1_controllers``).
    """
    if not os.path.isdir(f"{host.run}/systemd/system"):
        return
    places = hierarchies.membership(host, owner.pid)
    device_place = [place for controllers, place in places.items() if "devices" in controllers]
    if device_place != [places.get(("name=systemd",), places.get((), ""))]:
        raise SystemRefusedError(
            f"the unit of {owner} has no devices cgroup of its own, so systemd would move it out of its confinement",
            "set DevicePolicy=closed and DeviceAllow= for the GPUs on the unit, or use cgroup v2",
        )


def _check_type(folder: str) -> None:
    try:
        kind = read_file(f"{folder}/cgroup.type").decode("ascii").strip()
    except FileNotFoundError:
        return  # the root has no type
    if kind in _THREADED:
        raise _ThreadedError(
            f"{folder} is a {kind} cgroup, below which no process can be confined",
            "start the task executor in a cgroup of its own (a systemd unit without threaded cgroups)",
        )
