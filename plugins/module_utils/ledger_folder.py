"""The folder of the ledgers, which is root's with isolation and the TaskManagers' user's without.

Whoever it belonged to may have put anything there, and may do so at the same time: nothing in it is followed.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import contextmanager
from dataclasses import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOTS = "root"  # the folder in it that isolation uses
_FILES = ("ledger", "ledger.lock", "ledger.new")
_FILE_MODE = 0o660
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MARKER = b"Managed by Ansible: flinkops.gpu"


class FolderError(Exception):
    """A refusal in one line: what is wrong, the value seen, and the mend."""


@dataclass(frozen=True)
class Owner:
    """Whose the folder and what is in it are to be; None leaves it, as check mode has to with users yet to be made."""

    uid: int | None
    gid: int | None
    mode: int

    @property
    def is_root(self) -> bool:
        """Whether it is the folder of isolation."""
        return self.uid == 0


def present(path: str, owner: Owner, *, check: bool) -> list[str]:
    """Make the folder, or make it the owner's with the ledger in it; what was done, or would be.

    The other mode's ledger goes: nobody holds anything by it, or the mode would not be changed.
    """
    if not os.path.lexists(path):
        if not check:
            os.mkdir(path, 0o700)
            _settle(path, owner, check=False)
        return [f"make {path}"]
    return _settle(path, owner, check=check)


def absent(path: str, claim: str, *, check: bool, claimed: bool = False) -> list[str]:
    """Remove the ledgers, and the folder if it is empty then, unless the file ``claim`` of systemd-tmpfiles makes it.

    With ``claimed`` there will be such a file.
    """
    if not os.path.lexists(path):
        return []
    actions: list[str] = []
    with _opened(path) as folder:
        roots_stays = _ROOTS in os.listdir(folder) and not _remove_roots(folder, path, actions, check=check)
        others = [name for name in _remove_files(folder, path, actions, check=check) if name != _ROOTS or roots_stays]
    if not claimed and not _is_claimed(claim):
        _remove_empty(path, others, actions, check=check)
    return actions


@contextmanager
def _opened(path: str) -> Iterator[int]:
    try:
        descriptor = os.open(path, _FLAGS | os.O_DIRECTORY)
    except NotADirectoryError as error:
        raise FolderError(f"{path} is no folder: move it away") from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _settle(path: str, owner: Owner, *, check: bool) -> list[str]:
    """The folder first, so that who had it can't put anything there any more."""
    actions: list[str] = []
    with _opened(path) as folder:
        if _set(folder, owner, check=check):
            actions.append(f"set owner and mode of {path}")
        if owner.is_root:
            _remove_files(folder, path, actions, check=check)
            return actions + _remove_foreign(folder, path, check=check)
        _remove_roots(folder, path, actions, check=check)
        for name in _FILES:
            if _set_file(folder, name, owner, check=check):
                actions.append(f"set owner and mode of {path}/{name}")
    return actions


def _set(descriptor: int, owner: Owner, *, check: bool) -> bool:
    found = os.fstat(descriptor)
    uid = found.st_uid if owner.uid is None else owner.uid
    gid = found.st_gid if owner.gid is None else owner.gid
    is_settled = (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (uid, gid, owner.mode)
    if not check and not is_settled:
        os.fchown(descriptor, uid, gid)
        os.fchmod(descriptor, owner.mode)
    return not is_settled


def _set_file(folder: int, name: str, owner: Owner, *, check: bool) -> bool:
    """What is no plain file of one name alone is left to ``doctor``, which refuses it."""
    try:
        descriptor = os.open(name, _FLAGS, dir_fd=folder)
    except OSError:
        return False
    try:
        found = os.fstat(descriptor)
        is_plain = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
        return is_plain and _set(descriptor, Owner(owner.uid, owner.gid, _FILE_MODE), check=check)
    finally:
        os.close(descriptor)


def _remove_foreign(folder: int, path: str, *, check: bool) -> list[str]:
    """What stands where root's own folder has to, and was somebody else's to put there."""
    if _ROOTS not in os.listdir(folder) or _is_roots_folder(folder):
        return []
    if not check:
        found = os.stat(_ROOTS, dir_fd=folder, follow_symlinks=False)
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(f"{path}/{_ROOTS}")  # follows no links, and the folder above is root's by now
        else:
            os.unlink(_ROOTS, dir_fd=folder)
    return [f"remove {path}/{_ROOTS}, which was not root's"]


def _is_roots_folder(folder: int) -> bool:
    try:
        found = os.stat(_ROOTS, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == 0


def _remove_roots(folder: int, path: str, actions: list[str], *, check: bool) -> bool:
    """Remove isolation's ledger, and its folder if nothing else is in it; whether that is gone."""
    if not _is_roots_folder(folder):
        return False
    roots = f"{path}/{_ROOTS}"
    with _opened(roots) as inner:
        left = _remove_files(inner, roots, actions, check=check)
    return _remove_empty(roots, left, actions, check=check)


def _remove_files(folder: int, path: str, actions: list[str], *, check: bool) -> list[str]:
    """Remove the ledger's own files; the names that are left."""
    names = os.listdir(folder)
    for name in _FILES:
        if name in names and not _is_folder(folder, name):
            names.remove(name)
            actions.append(f"remove {path}/{name}")
            if not check:
                os.unlink(name, dir_fd=folder)
    return names


def _is_folder(folder: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _remove_empty(path: str, left: list[str], actions: list[str], *, check: bool) -> bool:
    """Whether it goes, or would."""
    if left:
        actions.append(f"leave {path}, since {', '.join(sorted(left))} in it is not the role's")
        return False
    actions.append(f"remove {path}")
    if not check:
        os.rmdir(path)
    return True


def _is_claimed(claim: str) -> bool:
    """Whether there is such a file that isn't the role's."""
    try:
        with open(claim, "rb") as stream:
            return _MARKER not in stream.read()
    except FileNotFoundError:
        return False
