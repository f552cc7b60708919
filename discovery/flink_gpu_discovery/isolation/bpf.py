"""bpf(2), as far as device programs need it; thin, by number, without libbpf.

Sources: ``union bpf_attr`` in ``include/uapi/linux/bpf.h``, bpf(2). Every call raises ``OSError`` as the kernel says.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

# The system call's number: arch/*/include/**/unistd*, syscall*.tbl.
_SYSTEM_CALL = {
    "aarch64": 280,
    "loongarch64": 280,
    "ppc64": 361,
    "ppc64le": 361,
    "riscv64": 280,
    "s390x": 351,
    "x86_64": 321,
}
_PROG_LOAD, _PROG_ATTACH, _OBJ_GET_INFO_BY_FD, _PROG_QUERY = 5, 8, 15, 16
_TYPE_CGROUP_DEVICE = 15  # BPF_PROG_TYPE_CGROUP_DEVICE
_ATTACH_CGROUP_DEVICE = 6  # BPF_CGROUP_DEVICE
_QUERY_EFFECTIVE = 1  # BPF_F_QUERY_EFFECTIVE
_NAME = b"flink_gpu"
_MOST_PROGRAMS = 64
_LOG_BYTES = 64 * 1024
_MOST_TRIES = 5  # the verifier gives up with EAGAIN when a signal comes
_libc: Final = ctypes.CDLL(None, use_errno=True)


def load(instructions: bytes) -> int:
    """Load a device program, of instructions of 8 bytes; the caller closes the descriptor.

    On failure it is tried again with the verifier's log, whose last line goes into the error.
    """
    code = ctypes.create_string_buffer(instructions, len(instructions))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    for _ in range(_MOST_TRIES):
        try:
            return _load(code, licence, None)
        except OSError as error:
            if error.errno != errno.EAGAIN:
                break
    log = ctypes.create_string_buffer(_LOG_BYTES)
    try:
        return _load(code, licence, log)
    except OSError as error:
        lines = log.value.decode("ascii", "replace").strip().splitlines()
        said = f" ({lines[-1][:200]})" if lines else ""
        raise OSError(error.errno, f"{os.strerror(error.errno or 0)}{said}") from error


def _load(
    code: ctypes.Array[ctypes.c_char], licence: ctypes.Array[ctypes.c_char], log: ctypes.Array[ctypes.c_char] | None
) -> int:
    attributes = struct.pack(
        "=IIQQIIQII16s",
        _TYPE_CGROUP_DEVICE,
        len(code) // 8,
        ctypes.addressof(code),
        ctypes.addressof(licence),
        1 if log else 0,
        len(log) if log else 0,
        ctypes.addressof(log) if log else 0,
        0,  # kern_version
        0,  # prog_flags
        _NAME,
    )
    return _bpf(_PROG_LOAD, ctypes.create_string_buffer(attributes, len(attributes)))


def attach(cgroup: int, program: int) -> None:
    """Attach the program to the cgroup (a descriptor of its folder), in the place of the one attached before, if any.

    Without flags it is the one program of that cgroup: a second call replaces it at once, without a moment
    with none. Programs of ancestors that were attached with BPF_F_ALLOW_MULTI, as systemd does, stay in force.
    """
    _bpf(_PROG_ATTACH, _packed("=IIII", cgroup, program, _ATTACH_CGROUP_DEVICE, 0))


def query(cgroup: int, *, effective: bool = False) -> tuple[int, ...]:
    """The ids of the device programs attached to a cgroup; on request of all that count there, its ancestors' too."""
    ids = (ctypes.c_uint32 * _MOST_PROGRAMS)()
    flags = _QUERY_EFFECTIVE if effective else 0
    attributes = _packed("=IIIIQI4x", cgroup, _ATTACH_CGROUP_DEVICE, flags, 0, ctypes.addressof(ids), _MOST_PROGRAMS)
    _bpf(_PROG_QUERY, attributes)
    count = struct.unpack("=IIIIQI4x", attributes.raw)[5]
    return tuple(ids[:count])


def program_id(program: int) -> int:
    """The id of a loaded program: the second word of ``struct bpf_prog_info``."""
    info = ctypes.create_string_buffer(8)
    _bpf(_OBJ_GET_INFO_BY_FD, _packed("=IIQ", program, len(info), ctypes.addressof(info)))
    return int(struct.unpack("=II", info.raw)[1])


def _packed(form: str, *values: int) -> ctypes.Array[ctypes.c_char]:
    content = struct.pack(form, *values)
    return ctypes.create_string_buffer(content, len(content))


def _bpf(command: int, attributes: ctypes.Array[ctypes.c_char]) -> int:
    number = _SYSTEM_CALL.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"bpf(2) has no known number on {os.uname().machine}")
    result = int(
        _libc.syscall(ctypes.c_long(number), ctypes.c_int(command), attributes, ctypes.c_uint(len(attributes)))
    )
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
