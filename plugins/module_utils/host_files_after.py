"""Whom to tell that files have changed: systemd of its units, the bus of its policy.

What is due stands in the record from before the first change until it was done, so an interrupted run leaves nobody
with old files in mind.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_commands import run
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class After:
    """``command`` is due when something changed ``below`` a folder."""

    below: str
    command: str


def after_from(options: Iterable[Mapping[str, str]]) -> tuple[After, ...]:
    """The module's parameter, checked."""
    found = tuple(After(each["below"].rstrip("/"), each["command"]) for each in options)
    for each in found:
        if not each.below.startswith("/") or not shlex.split(each.command):
            raise FilingError(
                f"after: {each.below!r}, {each.command!r}: name a folder by its absolute path, and a command"
            )
    return found


def due(after: Iterable[After], paths: Iterable[str]) -> tuple[str, ...]:
    """The commands that are due for changes at these paths, each once."""
    changed = tuple(paths)
    return tuple(each.command for each in after if any(path.startswith(f"{each.below}/") for path in changed))


def carry_out(command: str) -> None:
    """Run it; ``FilingError`` if it fails. It stays due then."""
    fault = run(shlex.split(command))
    if fault:
        raise FilingError(f"{command!r} failed ({fault}); the files are in their places, see to that and run again")
