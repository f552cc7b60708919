"""``doctor``: whether a task executor that starts here now would get its GPUs, and what stands in the way.

It asks what the calls would meet, as the user and in the place (unit, sandbox, cgroup) that it is started in, and
changes nothing.
"""

from __future__ import annotations

import os
import stat

from flink_gpu_discovery import callers, launcher
from flink_gpu_discovery.errors import DiscoveryError, NoDriverError, TryAgainError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.host import Deadline
from flink_gpu_discovery.ledger.store import Ledger
from flink_gpu_discovery.models import Finding

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flink_gpu_discovery.models import Inventory
    from flink_gpu_discovery.operations.context import Context

OK, WARNING, FAULT = "ok", "warning", "fault"
# A driver that has to be woken takes seconds; with --quick that is not waited for.
_QUICK_SECONDS = 0.2


class FaultError(DiscoveryError):
    """The first fault that was found, with its exit code."""

    def __init__(self, fault: Finding) -> None:
        super().__init__(f"{fault.name}: {fault.what}", fault.mend)
        self.exit_code = fault.exit_code


def examine(context: Context, *, quick: bool) -> tuple[Finding, ...]:
    """All checks, in the order in which a call would meet what they look at."""
    findings: list[Finding] = []
    seen: list[Inventory] = []
    findings += _tried("driver", lambda: _driver(context, quick, seen))
    findings += _tried("nodes", lambda: _nodes(context, seen))
    findings += _tried("ledger", lambda: _ledger(context))
    if context.options.isolate:
        if os.geteuid() != 0:
            findings += _tried("sudo", lambda: _sudo(context))
        findings += _tried("cgroup", lambda: _cgroup(context))
    return tuple(findings)


def first_fault(findings: tuple[Finding, ...]) -> Finding | None:
    """What a call would fail with."""
    return next((finding for finding in findings if finding.state == FAULT), None)


def _tried(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """What a check finds; an error on the way is a fault under its name."""
    found: list[Finding] = []
    try:
        found += check()
    except DiscoveryError as error:
        found.append(Finding(name, FAULT, error.what, error.mend, error.exit_code))
    except OSError as error:
        found.append(Finding(name, FAULT, str(error), "see what the unit's sandbox leaves open", 71))
    return found


def _driver(context: Context, quick: bool, seen: list[Inventory]) -> Iterator[Finding]:
    deadline = Deadline.from_now(_QUICK_SECONDS + 0.25) if quick else context.deadline
    try:
        seen.append(inventory.take(context.options.backend, context.host, context.environment, deadline))
    except TryAgainError as error:
        if not quick:
            raise
        mend = "enable persistence mode (nvidia-persistenced), or see 'doctor' without --quick"
        yield Finding("driver", WARNING, f"{error.what}: within {_QUICK_SECONDS:g} s", mend)
        return
    except NoDriverError as error:
        yield Finding("driver", FAULT, error.what, error.mend, error.exit_code)
        return
    faulty = [gpu for gpu in seen[0].gpus if gpu.fault]
    whole = f"{seen[0].backend} sees {len(seen[0].gpus)} GPUs, {len(seen[0].gpus) - len(faulty)} healthy"
    if len(seen[0].gpus) == len(faulty):
        yield Finding("driver", FAULT, whole, "see 'flink-gpu-discovery inventory' and 'dmesg'", 69)
        return
    yield Finding("driver", OK, whole)
    for note in (*seen[0].notes, *[f"GPU {gpu.index}: {gpu.fault}" for gpu in faulty]):
        yield Finding("driver", WARNING, note, "see 'flink-gpu-discovery inventory'")


def _nodes(context: Context, seen: list[Inventory]) -> Iterator[Finding]:
    """Each GPU's node is there and may be opened by this user; asked by access(2), which wakes no GPU."""
    if not seen:
        return
    gpus = seen[0].gpus
    if context.options.isolate:
        from flink_gpu_discovery.isolation import nodes

        nodes.survey(context.host, gpus)
    named = [gpu for gpu in gpus if gpu.node]
    for gpu in named:
        if not os.path.exists(gpu.node):
            yield Finding("nodes", FAULT, f"{gpu.node} of GPU {gpu.index} is missing", "PrivateDevices=no; udev", 71)
        elif not os.access(gpu.node, os.R_OK | os.W_OK):
            what = f"uid {os.geteuid()} may not open {gpu.node}"
            yield Finding("nodes", FAULT, what, "its group or mode; PrivateDevices=no; DeviceAllow=", 77)
        else:
            continue
        return
    yield Finding("nodes", OK, f"{len(named)} device nodes may be opened" if named else "no device node is known")


def _ledger(context: Context) -> Iterator[Finding]:
    if not context.options.coordinate:
        yield Finding("ledger", OK, "not used")
        return
    path, folder = context.options.ledger, os.path.dirname(context.options.ledger)
    ledger = Ledger(path, context.host, roots=context.options.isolate)
    ledger.check_place()
    held = len(ledger.read())
    if context.options.isolate and _read_only(folder):
        mend = "ReadWritePaths=/run/flink-gpu-discovery in the unit, or wherever the ledger lies (ProtectSystem=strict)"
        yield Finding("ledger", FAULT, f"{folder} is on a read-only file system here", mend, 74)
        return
    if not context.options.isolate and os.path.isdir(folder) and not os.access(folder, os.W_OK):
        mend = f"chown it to the task executors' user or group, or ReadWritePaths={folder} in the unit"
        yield Finding("ledger", FAULT, f"uid {os.geteuid()} may not write to {folder}", mend, 77)
        return
    if not context.options.isolate and not os.path.isdir(folder):
        yield Finding("ledger", FAULT, f"{folder} does not exist", "systemd-tmpfiles --create", 74)
        return
    yield Finding("ledger", OK, f"{path} holds {held} GPUs")
    for warning in ledger.warnings():
        yield Finding("ledger", WARNING, warning)


def _sudo(context: Context) -> Iterator[Finding]:
    """The way to root: sudo, the program, and nothing in the sandbox that keeps sudo from working."""
    status = context.processes.status(os.getpid())
    if status.get(b"NoNewPrivs", b"").strip() == b"1":
        mend = "NoNewPrivileges=no in the unit (and nothing that implies it, such as RestrictSUIDSGID=)"
        yield Finding("sudo", FAULT, "the process may gain no privileges, so sudo can't work", mend, 71)
        return
    if not _knows_users(context.host.proc):
        what, mend = "only some users exist in here, so sudo can't work", "PrivateUsers=no in the unit"
        yield Finding("sudo", FAULT, what, mend, 71)
        return
    for path in (callers.SUDO, launcher.PROGRAM):
        found = os.stat(path)
        if found.st_uid != 0 or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            yield Finding("sudo", FAULT, f"{path} is not root's alone", f"chown root:root {path}", 77)
            return
    if int(status[b"CapBnd"], 16) == 0:
        yield Finding(
            "sudo", FAULT, "the bounding set of capabilities is empty", "CapabilityBoundingSet= of the unit", 71
        )
        return
    yield Finding("sudo", OK, f"{launcher.PROGRAM} can be reached")


def _cgroup(context: Context) -> Iterator[Finding]:
    """Where this process's confinement would be made, and whether it could leave it, as far as it can try itself."""
    from flink_gpu_discovery.isolation import places

    found = places.look(context.host, context.processes.owner(os.getpid()))
    if found is None:
        yield Finding("cgroup", FAULT, "neither cgroup2 nor the v1 devices controller is mounted", "mount one", 71)
        return
    folder, version, doors = found
    if _read_only(folder):
        what = f"{folder} is on a read-only file system here"
        yield Finding("cgroup", FAULT, what, "mount the cgroup tree writable (ProtectControlGroups=no in the unit)", 71)
        return
    yield Finding("cgroup", OK, f"a confinement would be made below {folder} (version {version})")
    if os.geteuid() == 0:
        yield Finding("escape", WARNING, "root can leave any confinement", "run the task executor as another user")
        return
    yield from _escape(context, doors)


def _escape(context: Context, doors: list[str]) -> Iterator[Finding]:
    from flink_gpu_discovery.isolation import bus, proof

    open_door = proof.open_door(doors)
    if open_door:
        what = f"uid {os.geteuid()} may write {open_door}, and leave a confinement by it"
        yield Finding("escape", FAULT, what, "no Delegate= for its unit or those above", 71)
        return
    try:
        ways = bus.ways_out(f"{context.host.run}/dbus/system_bus_socket", os.geteuid())
    except bus.BusError as error:
        yield Finding("escape", FAULT, f"the system bus can't be asked: {error}", "see 'systemctl status dbus'", 71)
        return
    if ways:
        what = f"uid {os.geteuid()} may call {ways[0]} of systemd's manager"
        yield Finding("escape", FAULT, what, "install the D-Bus policy of docs/security.md for this user", 71)
        return
    yield Finding("escape", OK, "no way out of a confinement is open")


def _knows_users(proc: str) -> bool:
    """Whether root and uid 1, as which sudo reads its rules, are in the user namespace; see user_namespaces(7)."""
    try:
        with open(f"{proc}/self/uid_map", "rb") as file:
            ranges = [line.split() for line in file]
    except FileNotFoundError:  # a kernel without user namespaces
        return True
    return all([any([int(first) <= uid < int(first) + int(count) for first, _, count in ranges]) for uid in (0, 1)])


def _read_only(folder: str) -> bool:
    """Whether root, too, could write nothing there, or, if it doesn't exist yet, in what it would be made in."""
    folder = os.path.abspath(folder)
    while not os.path.exists(folder):
        folder = os.path.dirname(folder)
    return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
