"""Opening and replacing the ledger's files, and what each refusal of the system means.

The modes here are meant as they stand: a file is made without a umask, so that it is not there with others for even
a moment. No file is opened through a symbolic link, nothing is read that others could have planted, and a replacement
is complete or not there at all: temporary file, fsync, rename, then fsync of the folder.
"""

from __future__ import annotations

import errno
import os
import stat

from flink_gpu_discovery.errors import (
    DiscoveryError,
    InputOutputError,
    LedgerDamagedError,
    PermissionRefusedError,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Modes:
    """Who may do what with the ledger's folder, itself, and its lock."""

    __slots__ = ("file", "folder", "lock")

    def __init__(self, *, folder: int, file: int, lock: int) -> None:
        self.folder: Final = folder
        self.file: Final = file
        self.lock: Final = lock


SHARED = Modes(folder=0o770, file=0o660, lock=0o660)  # among the task executors' users
ROOTS = Modes(folder=0o755, file=0o644, lock=0o600)  # of the program that confines them; everybody may read
_LARGEST_BYTES = 4 * 1024 * 1024  # a record takes about 200
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY


def refused(path: str, action: str, error: OSError) -> DiscoveryError:
    """The error of the tree that an ``OSError`` on the ledger's files comes to."""
    reason = f"cannot {action} {path}: {error.strerror}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return PermissionRefusedError(
            f"{reason} (as uid {os.geteuid()})",
            "let the task executors' user or group own the ledger's folder, or see SELinux's or AppArmor's log",
        )
    if error.errno == errno.ELOOP:
        return PermissionRefusedError(f"{reason}: a symbolic link is not followed", "name the file itself")
    if error.errno == errno.ENOENT and not os.path.isdir(os.path.dirname(path)):
        return InputOutputError(reason, f"create the folder {os.path.dirname(path)}")
    return InputOutputError(reason, "see to the file system, then try again")


def exists(path: str) -> bool:
    """Whether there is a file; what is none is refused before anything is made beside it."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise refused(path, "look at", error) from error
    if stat.S_ISLNK(found.st_mode):
        raise PermissionRefusedError(f"{path} is a symbolic link, which is not followed", "name the file itself")
    if not stat.S_ISREG(found.st_mode):
        raise LedgerDamagedError(f"{path} is not a regular file", "name another")
    return True


def size(path: str) -> int:
    """The file's size in bytes, 0 if it can't be told."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def read(path: str) -> bytes | None:
    """The file's content, None if there is no such file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _FLAGS)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise refused(path, "open", error) from error
    try:
        size = _check_trusted(path, os.fstat(descriptor)).st_size
        if size > _LARGEST_BYTES:
            raise LedgerDamagedError(f"{path} holds {size} bytes, more than any ledger", "keep it and name another")
        return _read_all(descriptor)
    except OSError as error:
        raise refused(path, "read", error) from error
    finally:
        close(descriptor)


def close(descriptor: int) -> None:
    """Close a descriptor where an error tells nothing new: its file was synced, or only read or locked."""
    try:
        os.close(descriptor)
    except OSError:
        pass  # the descriptor is free in any case


def open_lock(path: str, modes: Modes) -> int:
    """A descriptor of the lock file, made on first use (and its folder with it)."""
    _check_folder(os.path.dirname(path))
    for _ in range(3):
        try:
            return _opened_lock(path)
        except FileNotFoundError:
            _make_folder(os.path.dirname(path), modes)
        try:
            return _created_lock(path, modes)
        except FileExistsError:
            continue  # another process made it just now
        except OSError as error:
            raise refused(path, "create", error) from error
    raise InputOutputError(f"{path} comes and goes", "find out what removes it")


def prepare(path: str, content: bytes, modes: Modes) -> None:
    """Write what is to stand at ``path`` beside it, and sync it; only for the holder of the lock.

    The temporary file has one fixed name: whatever an interrupted call left there goes with the next one.
    """
    temporary = _temporary(path)
    try:
        _write_new(temporary, content, path, modes)
    except OSError as error:
        _remove_quietly(temporary)
        raise refused(temporary, "write", error) from error


def put(path: str) -> None:
    """Let what was prepared take the place of ``path``, and sync the folder."""
    try:
        os.rename(_temporary(path), path)
    except OSError as error:
        _remove_quietly(_temporary(path))
        raise refused(path, "replace", error) from error
    _sync_folder(os.path.dirname(path))


def remove_leftover(path: str) -> None:
    """Remove the temporary file of an interrupted call; only for the holder of the lock."""
    _remove_quietly(_temporary(path))


def _temporary(path: str) -> str:
    return f"{path}.new"


def _sync_folder(folder: str) -> None:
    """A refusal is no failure: without it a crash of the host may leave the old file, of whose owners none lives."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        close(descriptor)


def _opened_lock(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | _FLAGS)
        try:
            _check_trusted(path, os.fstat(descriptor))
        except BaseException:
            close(descriptor)
            raise
    except FileNotFoundError:
        raise
    except OSError as error:
        raise refused(path, "open", error) from error
    return descriptor


def _created_lock(path: str, modes: Modes) -> int:
    """It appears under its name with owner and group set, so that no crash leaves one that only root can open."""
    folder = os.path.dirname(path)
    try:
        descriptor = _made(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, modes.lock)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        return _created_lock_by_name(path, modes)  # a file system without O_TMPFILE, such as NFS
    try:
        _share(descriptor, os.stat(folder))
        # With src_dir_fd Python calls linkat(2), which alone follows this link; see open(2), O_TMPFILE.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)
    except BaseException:
        close(descriptor)
        raise
    return descriptor


def _created_lock_by_name(path: str, modes: Modes) -> int:
    descriptor = _made(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, modes.lock)
    try:
        _share(descriptor, os.stat(os.path.dirname(path)))
    except BaseException:
        close(descriptor)
        raise
    return descriptor


def _made(path: str, flags: int, mode: int) -> int:
    """A descriptor of a new file with exactly this mode."""
    umask = os.umask(0)
    try:
        return os.open(path, flags, mode)
    finally:
        os.umask(umask)


def _check_folder(folder: str) -> None:
    """A folder that somebody else's link leads to is not where the ledger was meant to be."""
    try:
        found = os.lstat(folder)
    except OSError:
        return  # what follows says what is wrong with it
    if stat.S_ISLNK(found.st_mode) and found.st_uid not in (0, os.geteuid()):
        raise PermissionRefusedError(
            f"{folder} is a symbolic link of uid {found.st_uid}", "name the folder that is meant itself"
        )


def _check_trusted(path: str, found: os.stat_result) -> os.stat_result:
    """Refuse what is no plain file, and what a stranger could have put into a world-writable folder."""
    if not stat.S_ISREG(found.st_mode):
        raise LedgerDamagedError(f"{path} is not a regular file", "name another")
    if found.st_uid in (0, os.geteuid()) and found.st_nlink <= 1:
        return found
    folder = os.path.dirname(path)
    if os.stat(folder).st_mode & stat.S_IWOTH:
        raise PermissionRefusedError(
            f"{path} belongs to uid {found.st_uid} and has {found.st_nlink} names, in a folder that everybody may"
            f" write; the caller is uid {os.geteuid()}",
            "keep the ledger in a folder of the task executors' user or group",
        )
    return found


def _read_all(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    while True:
        piece = os.read(descriptor, 1024 * 1024)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def _make_folder(folder: str, modes: Modes) -> None:
    """One level only: a missing parent is a mistake in the path rather than a first start.

    Root's own folder lies in the one that coordination would use, so there it may be two.
    """
    above = os.path.dirname(folder)
    if modes is ROOTS and not os.path.isdir(above) and os.path.isdir(os.path.dirname(above)):
        _make_folder(above, modes)
    try:
        umask = os.umask(0)
        try:
            os.mkdir(folder, modes.folder)
        finally:
            os.umask(umask)
    except FileExistsError:
        pass
    except PermissionError as error:
        raise PermissionRefusedError(
            f"cannot create {folder} as uid {os.geteuid()}",
            f"make it as root: install -d -m 0770 -o USER -g GROUP {folder}",
        ) from error
    except OSError as error:
        raise refused(folder, "create", error) from error


def _share(descriptor: int, model: os.stat_result) -> None:
    """Give a new file the group of the file that it replaces, or of the folder; where root makes it, also the owner."""
    made = os.fstat(descriptor)
    owner = model.st_uid if os.geteuid() == 0 else made.st_uid
    if (made.st_uid, made.st_gid) != (owner, model.st_gid):
        try:
            os.fchown(descriptor, owner, model.st_gid)
        except PermissionError:
            pass  # not a member of that group, so nobody of it shares with us


def _write_new(path: str, content: bytes, replaced: str, modes: Modes) -> None:
    _remove(path)
    descriptor = _made(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, modes.file)
    try:
        _share(descriptor, os.lstat(replaced) if os.path.lexists(replaced) else os.stat(os.path.dirname(replaced)))
        written = 0
        while written < len(content):
            written += os.write(descriptor, content[written:])
        os.fsync(descriptor)
    finally:
        close(descriptor)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def _remove_quietly(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # the error that led here says it all
