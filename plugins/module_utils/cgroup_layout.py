"""What a host's cgroups offer for confining task executors, and what stands in the way; nothing is changed.

Sources: cgroups(7), proc_pid_mountinfo(5), Documentation/admin-guide/kernel-parameters.txt (``cgroup_disable=``,
``cgroup_no_v1=``), init/Kconfig (``CGROUP_BPF``, ``CGROUP_DEVICE``).
"""

from __future__ import annotations

import gzip
import os
import zlib

OWN_MOUNT = "/run/flink_gpu_cgroup"  # where the role mounts cgroup v2 if nobody else does
_BPF_OPTIONS = ("CONFIG_BPF_SYSCALL", "CONFIG_CGROUP_BPF")
_CONTAINER_FILES = ("run/.containerenv", ".dockerenv")


def look(root: str = "/", release: str = "") -> dict[str, object]:
    """How the host stands, below ``root``, with the kernel ``release`` (``uname -r``).

    ``layout``: v2, hybrid, v1 or none, by what others than the role mounted. ``usable``: the version by which a
    confinement would be made, or empty. ``mount``: whether the role has to mount cgroup v2 for that, and ``mounted``
    whether it is. ``lacks``: what hinders, a sentence each; empty wherever something is usable.
    """
    unified, devices = _mounts(root)
    foreign = [place for place in unified if place != OWN_MOUNT]
    obstacles = _obstacles_to_v2(root, release or os.uname().release)
    offers_v2 = not obstacles
    usable = "v2" if offers_v2 and unified else "v1" if devices else ""
    mount = offers_v2 and not foreign and not devices
    return {
        "layout": _layout(foreign, devices),
        "usable": "v2" if mount else usable,
        "mount": mount,
        "mounted": OWN_MOUNT in unified,
        "lacks": [] if usable or mount else [*obstacles, *_obstacles_to_v1(root)],
    }


def _layout(unified: list[str], devices: list[str]) -> str:
    if unified and devices:
        return "hybrid"
    return "v2" if unified else "v1" if devices else "none"


def _mounts(root: str) -> tuple[list[str], list[str]]:
    """Where cgroup v2 is mounted, and where version 1's ``devices`` controller is."""
    unified, devices = [], []
    for line in _read(root, "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        place = before.split(" ")[4]
        if kind == "cgroup2":
            unified.append(place)
        elif kind == "cgroup" and "devices" in options.split(","):
            devices.append(place)
    return unified, devices


def _obstacles_to_v2(root: str, release: str) -> list[str]:
    if "\tcgroup2\n" not in _read(root, "proc/filesystems"):
        return ["the kernel knows no cgroup v2 (Linux 4.15 and later do, with CONFIG_CGROUPS)"]
    options = _kernel_options(root, release)
    return [
        f"the kernel {release} was built without {name}" for name in _BPF_OPTIONS if options and name not in options
    ]


def _obstacles_to_v1(root: str) -> list[str]:
    words = _read(root, "proc/cmdline").split()
    for name in ("cgroup_disable", "cgroup_no_v1"):
        for word in words:
            if word.startswith(f"{name}=") and {"devices", "all"} & set(word.partition("=")[2].split(",")):
                return [f"cgroup v1's devices controller is switched off on the kernel's command line ({word})"]
    if not any(line.split("\t")[0] == "devices" for line in _read(root, "proc/cgroups").splitlines()):
        return ["the kernel has no devices controller of cgroup v1 (CONFIG_CGROUP_DEVICE)"]
    return ["cgroup v1's devices controller is not mounted (systemd mounts it, unless it was told not to)"]


def _kernel_options(root: str, release: str) -> set[str]:
    """What the kernel was built with, as far as it is told; empty if that isn't known."""
    try:
        with gzip.open(os.path.join(root, "proc/config.gz"), "rt", encoding="ascii", errors="replace") as stream:
            text = stream.read()
    except (OSError, EOFError, zlib.error):
        text = _read(root, f"boot/config-{release}") if not _in_container(root) else ""
    return {line.partition("=")[0] for line in text.splitlines() if line.startswith("CONFIG_")}


def _in_container(root: str) -> bool:
    """Whether /boot is of a root file system that the kernel doesn't come from."""
    return any(os.path.exists(os.path.join(root, name)) for name in _CONTAINER_FILES)


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="surrogateescape") as stream:
            return stream.read()
    except OSError:
        return ""
