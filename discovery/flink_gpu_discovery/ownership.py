"""Whether only root can change what a program that runs as root relies on."""

from __future__ import annotations

import os
import stat

from flink_gpu_discovery.errors import PermissionRefusedError

_MOST_LINKS = 40  # MAXSYMLINKS in include/linux/namei.h
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def check(path: str) -> None:
    """``PermissionRefusedError`` if anybody but root could change the file or folder at ``path``, or put another there.

    Every folder and link on the way is looked at, as the kernel walks it. What isn't there yet is made by root, in a
    folder that was looked at.
    """
    here, links = "/", 0
    waiting = _names(path)
    while waiting:
        name = waiting.pop()
        if name == "..":
            here = os.path.dirname(here)
            continue
        step = os.path.join(here, name)
        try:
            found = os.lstat(step)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if links > _MOST_LINKS:
                raise PermissionRefusedError(f"{path} leads through too many symbolic links", "name it itself")
            target = os.readlink(step)
            here = "/" if target.startswith("/") else here
            waiting += _names(target)
            continue
        check_status(step, found, path)
        here = step


def check_status(step: str, found: os.stat_result, path: str) -> None:
    """Judge one file or folder, on the way to ``path``. A sticky folder, as /tmp, keeps others from what is root's."""
    is_sticky_folder = stat.S_ISDIR(found.st_mode) and bool(found.st_mode & stat.S_ISVTX)
    if found.st_uid != 0 or (found.st_mode & _OTHERS and not is_sticky_folder):
        mode = "0755" if stat.S_ISDIR(found.st_mode) else "go-w"
        raise PermissionRefusedError(
            f"{step} belongs to uid {found.st_uid} and has mode {stat.S_IMODE(found.st_mode):04o}, so others than"
            f" root could replace {path}",
            f"chown root:root {step} && chmod {mode} {step}",
        )


def _names(path: str) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.split("/")) if name not in ("", ".")]
