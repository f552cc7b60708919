"""All that a host has, and what it had when it was prepared."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.booted.taskmanager import AGENT
from tests.molecule.conftest import Site
from tests.role.fleet import LOOK

WHOLE = ("/", "/run", "/tmp")
# What a host that runs writes of itself, by no matter which command.
LIVING = (
    "/run/log/journal/",
    "/run/systemd/",
    "/run/utmp",
    "/var/log/",
    "/var/cache/ldconfig/",
    "/tmp/ansible_",
    AGENT,
)


def prepared(site: Site, listing: str) -> dict[str, str]:
    """What was there before the role came."""
    text = (Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"]) / f"{site.name}.{listing}").read_text(encoding="utf-8")
    found: dict[str, str] = json.loads(text)
    return found


def everything(site: Site) -> dict[str, str]:
    """The listing of the whole host, but for what it writes of itself."""
    return lasting(json.loads(site.host.succeed("/usr/bin/python3", "-IS", "-c", LOOK, *WHOLE)))


def lasting(listing: dict[str, str]) -> dict[str, str]:
    return {path: about for path, about in listing.items() if not path.startswith(LIVING)}
