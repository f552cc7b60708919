"""Whether only root can change what is at a path, or lead it elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

_MOST_LINKS = 40  # MAXSYMLINKS in include/linux/namei.h


def check_folders(path: str) -> None:
    """``FilingError`` if a step to the folder of ``path`` is not root's alone; what is missing root makes itself."""
    _walk(path, _steps(Path(path).parent), ends_in_folder=True)


def check_all(path: str) -> bool:
    """The same for what is at ``path``, too, be it a file, a folder or a link; whether it is there."""
    return _walk(path, _steps(Path(path)), ends_in_folder=False)


def _walk(path: str, steps: list[str], *, ends_in_folder: bool) -> bool:
    """Go as the kernel does, link by link; whether the end was reached."""
    here, links = Path("/"), 0
    _check_step(here, here.lstat(), path, is_way=True)
    while steps:
        name = steps.pop()
        step = here.parent if name == ".." else here / name
        try:
            found = step.lstat()
        except FileNotFoundError:
            return False
        _check_step(step, found, path, is_way=bool(steps) or ends_in_folder)
        if not stat.S_ISLNK(found.st_mode):
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise FilingError(f"{path} leads through more than {_MOST_LINKS} symbolic links: name the folder itself")
        target = step.readlink()
        here = Path("/") if target.is_absolute() else here
        steps += _steps(target)
    return True


def _check_step(step: Path, found: os.stat_result, path: str, *, is_way: bool) -> None:
    """A sticky folder keeps others from what is root's in it."""
    name = str(step) if str(step) == path else f"{step}, on the way to {path},"
    if found.st_uid != 0:
        raise FilingError(
            f"{name} belongs to uid {found.st_uid}, who could lead it elsewhere: chown -h root:root {step}"
        )
    if stat.S_ISLNK(found.st_mode):
        return
    is_folder = stat.S_ISDIR(found.st_mode)
    if is_way and not is_folder:
        raise FilingError(f"{name} is no folder: move it away")
    is_sticky = is_folder and found.st_mode & stat.S_ISVTX
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not is_sticky:
        raise FilingError(
            f"{name} has mode {stat.S_IMODE(found.st_mode):04o}, so others than root may write there: chmod go-w {step}"
        )


def _steps(path: Path) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.parts) if name != "/"]
