"""The mount table: what kind of file system a path lies on. Source: proc_pid_mountinfo(5)."""

from __future__ import annotations

import os

from flink_gpu_discovery.host import read_file

_FUSE_MAGIC = 0x65735546
_LARGEST_BYTES = 4 * 1024 * 1024
_NETWORK_FILE_SYSTEMS = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs"),
    *("lustre", "nfs", "nfs4", "ocfs2", "smb3", "smbfs"),
)


def is_fuse(descriptor: int) -> bool:
    """Whether an open file is served by a process, which may never answer. Source: statfs(2), linux/magic.h."""
    import ctypes

    buffer = (ctypes.c_long * 32)()  # f_type comes first
    if ctypes.CDLL(None).fstatfs(descriptor, buffer):
        return True  # what can't be told
    return bool(buffer[0] == _FUSE_MAGIC)


def network_file_system(path: str, proc: str) -> str:
    """The type of the file system that ``path`` lies on if that is shared between hosts, else empty.

    The table's fields: id, parent, major:minor, root, mount point, options, tags, ``-``, type.
    """
    try:
        device = os.stat(os.path.dirname(path)).st_dev
        lines = read_file(f"{proc}/self/mountinfo", _LARGEST_BYTES).decode("utf-8", "replace").splitlines()
    except OSError:
        return ""
    numbers = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        head, _, tail = line.partition(" - ")
        kind = tail.partition(" ")[0]
        if head.split()[2:3] == [numbers] and kind in _NETWORK_FILE_SYSTEMS:
            return kind
    return ""
