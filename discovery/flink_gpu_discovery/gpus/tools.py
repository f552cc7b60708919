"""Find a vendor's command-line tool."""

from __future__ import annotations

import os

from flink_gpu_discovery.errors import NoDriverError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def find(name: str, environment: Mapping[str, str], usual: tuple[str, ...]) -> str:
    """Absolute path of ``name``: from the absolute folders of PATH, then from where it usually lies.

    A service's PATH often lacks the latter, and may be unset. ``NoDriverError`` if it is nowhere.
    """
    folders = [folder for folder in environment.get("PATH", os.defpath).split(":") if folder.startswith("/")]
    for folder in (*folders, *usual):
        path = f"{folder}/{name}"
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise NoDriverError(f"{name} is not in PATH nor in {', '.join(usual)}", "install the GPU driver")
