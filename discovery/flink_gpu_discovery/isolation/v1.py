"""Rules on cgroup v1: the ``devices`` controller's lists, in the owner's cgroup."""

from __future__ import annotations

import errno
import os

from flink_gpu_discovery.errors import PermissionRefusedError, SystemRefusedError
from flink_gpu_discovery.host import read_file
from flink_gpu_discovery.isolation import device_list

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.errors import DiscoveryError
    from flink_gpu_discovery.isolation.rules import Rules

_LARGEST_LIST = 4 * 1024 * 1024


def enforce(folder: str, rules: Rules) -> None:
    """Let exactly ``rules`` hold in a cgroup from now on, within what its parent lets pass.

    Under a parent that lets everything pass but exceptions, exceptions are added. The kernel doesn't show
    them, so a try from inside must prove them. Under one with a list of what is open, what is left of that list is
    written and read back. Denials come first.
    """
    parent = os.path.dirname(folder)
    try:
        present, above = _list(folder), _list(parent)
        if device_list.allows_everything(present):
            _write(folder, *device_list.exceptions(rules))
            return
        from_parent = present if device_list.allows_everything(above) else above
        wanted = device_list.narrowed(device_list.parse(from_parent), rules)
        _write(folder, *device_list.changes(device_list.parse(present), wanted))
        left = device_list.parse(_list(folder))
    except OSError as error:
        raise _refused(folder, error) from error
    except ValueError as error:
        raise SystemRefusedError(f"{folder}/devices.list: {error}", "report this with the list") from error
    if left != wanted:
        entries = "; ".join([*device_list.changes(left, wanted)[0], *device_list.changes(left, wanted)[1]][:4])
        raise SystemRefusedError(
            f"{folder}/devices.list is not what was written to it, it differs in: {entries}", "report this"
        )


def _list(folder: str) -> str:
    return read_file(f"{folder}/devices.list", _LARGEST_LIST).decode("ascii")


def _write(folder: str, deny: list[str], allow: list[str]) -> None:
    """One entry a write, as the kernel wants it."""
    for name, lines in (("devices.deny", deny), ("devices.allow", allow)):
        descriptor = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            for line in lines:
                _write_line(descriptor, f"{folder}/{name}", line)
        finally:
            os.close(descriptor)


def _write_line(descriptor: int, path: str, line: str) -> None:
    try:
        os.write(descriptor, line.encode("ascii"))
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror} ({line!r} to {path})") from error


def _refused(folder: str, error: OSError) -> DiscoveryError:
    what = f"the kernel refused to set the device list of {folder}: {error.strerror}"
    if error.errno in (errno.EPERM, errno.EACCES):
        return PermissionRefusedError(what, "give it CAP_SYS_ADMIN; or a cgroup above denies this device")
    return SystemRefusedError(what, "see that the v1 devices controller is mounted writable")
