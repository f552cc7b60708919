"""Whether only root can change what is at a path, or lead it elsewhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

_MOST_LINKS = 40  # MAXSYMLINKS in include/linux/namei.h


def check_folders(path: str) -> None:
    """Walk to the folder of ``path`` as the kernel does; ``FilingError`` if a step there is not root's alone.

    What is missing is no danger: root makes it, in a folder that was looked at. A sticky folder keeps others from
    what is root's in it.
    """
    here, links = Path("/"), 0
    steps = _steps(Path(path).parent)
    while steps:
        name = steps.pop()
        step = here.parent if name == ".." else here / name
        try:
            found = step.lstat()
        except FileNotFoundError:
            return
        _check_step(step, found, path)
        if not stat.S_ISLNK(found.st_mode):
            here = step
            continue
        links += 1
        if links > _MOST_LINKS:
            raise FilingError(f"{path} leads through more than {_MOST_LINKS} symbolic links: name the folder itself")
        target = step.readlink()
        here = Path("/") if target.is_absolute() else here
        steps += _steps(target)


def _check_step(step: Path, found: os.stat_result, path: str) -> None:
    if found.st_uid != 0:
        raise FilingError(
            f"{step}, on the way to {path}, belongs to uid {found.st_uid}, who could lead it elsewhere:"
            f" chown -h root:root {step}"
        )
    if stat.S_ISLNK(found.st_mode):
        return
    if not stat.S_ISDIR(found.st_mode):
        raise FilingError(f"{step}, on the way to {path}, is no folder: move it away")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not found.st_mode & stat.S_ISVTX:
        raise FilingError(
            f"{step}, on the way to {path}, has mode {stat.S_IMODE(found.st_mode):04o}, so others than root may"
            f" write there: chmod go-w {step}"
        )


def _steps(path: Path) -> list[str]:
    """The names of a path, the last one first."""
    return [name for name in reversed(path.parts) if name != "/"]
