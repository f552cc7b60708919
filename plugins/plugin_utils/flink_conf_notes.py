"""The notes in a host's record by which the role knows what it wrote into Flink's configuration.

A note names an external resource, a fingerprint of its settings, and the file. An operator may have written something
else under that name since, or the role may have been interrupted before it wrote: then they are not the role's.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import SCRIPT, owned_keys

_NOTE = re.compile(r"flink resource (?P<name>\S+) (?P<fingerprint>[0-9a-f]{12}) in (?P<path>/.*)")
_SCRIPT_KEYS = ("param.discovery-script.path", "param.discovery-script")


@dataclass(frozen=True)
class Note:
    """What the role wrote, or was about to."""

    name: str
    fingerprint: str
    path: str

    @classmethod
    def of(cls, name: str, settings: Mapping[str, str], path: str) -> Note:
        """The note of a resource with these settings, as Flink reads them."""
        owned = {key: settings[key] for key in owned_keys(name) if key in settings}
        digest = hashlib.sha256(json.dumps(owned, sort_keys=True).encode()).hexdigest()
        return cls(name, digest[:12], path)

    def __str__(self) -> str:
        """As it stands in the record."""
        return f"flink resource {self.name} {self.fingerprint} in {self.path}"

    def holds(self, settings: Mapping[str, str]) -> bool:
        """Whether that resource still is the role's: it calls our script, or is as it was written."""
        scripts = [settings.get(f"external-resource.{self.name}.{key}", "") for key in _SCRIPT_KEYS]
        calls = PurePosixPath(SCRIPT).name in [PurePosixPath(script).name for script in scripts]
        return calls or Note.of(self.name, settings, self.path) == self


def parse(texts: Iterable[str], path: str | None = None) -> list[Note]:
    """The notes among the texts in a record; those of one file, if it is named."""
    found = [Note(**matched.groupdict()) for matched in map(_NOTE.fullmatch, texts) if matched]
    return [note for note in found if path in (None, note.path)]
