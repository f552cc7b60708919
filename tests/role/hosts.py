"""The kinds of hosts that the role is tested on. For ``parametrize("host", EVERY_KIND, indirect=True, ids=str)``."""

from __future__ import annotations

from typing import NamedTuple

from tests.booted.engine import Layout


class HostKind(NamedTuple):
    """A release of Debian, and a layout of cgroups."""

    suite: str
    layout: Layout

    def __str__(self) -> str:
        return f"{self.suite}-{self.layout}"


BULLSEYE = HostKind("bullseye", "v2")  # systemd 247, Python 3.9: the oldest
BOOKWORM = HostKind("bookworm", "v2")
HYBRID = HostKind("bookworm", "hybrid")
TRIXIE = HostKind("trixie", "v2")  # systemd 257, Python 3.13: the newest

EVERY_KIND = (BULLSEYE, BOOKWORM, HYBRID, TRIXIE)
