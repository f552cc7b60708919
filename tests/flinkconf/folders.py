"""Which file of a configuration folder each Flink reads; the table stands in docs/flink-config.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .answers import Answer, Loads, Refuses
from .readers import FLAT, YAML, files_of

# The generations of Flink, by the files that they read.
GENERATIONS = {"up to 1.18": (FLAT,), "1.19 and 1.20": (FLAT, YAML), "2.0 and later": (YAML,)}

BY_FLAT, BY_YAML = Loads({"read": FLAT}), Loads({"read": YAML})
NO_FLAT, NO_YAML = Refuses(f"{FLAT}) does not exist."), Refuses(f"{YAML}) does not exist.")
NO_FILE = Refuses("(Is a directory)")


@dataclass(frozen=True)
class Folder:
    """What a folder holds, and what each generation makes of it, in the order of GENERATIONS."""

    name: str
    files: Mapping[str, bytes | None]
    answers: tuple[Answer, Answer, Answer]

    def answer(self, version: str) -> Answer:
        """What a release makes of the folder."""
        return self.answers[list(GENERATIONS.values()).index(files_of(version))]


def _says(name: str) -> bytes:
    return f"read: {name}\n".encode()


FOLDERS = (
    Folder(f"`{FLAT}`", {FLAT: _says(FLAT)}, (BY_FLAT, BY_FLAT, NO_YAML)),
    Folder(f"`{YAML}`", {YAML: _says(YAML)}, (NO_FLAT, BY_YAML, BY_YAML)),
    Folder("both", {FLAT: _says(FLAT), YAML: _says(YAML)}, (BY_FLAT, BY_FLAT, BY_YAML)),
    Folder(
        f"`{FLAT}`, and a `{YAML}` that can't be loaded",
        {FLAT: _says(FLAT), YAML: b"{"},
        (
            BY_FLAT,
            BY_FLAT,
            Refuses("expected the node content, but found '<stream end>'", (1, 2)),
        ),
    ),
    Folder(f"an empty `{FLAT}`, and `{YAML}`", {FLAT: b"", YAML: _says(YAML)}, (Loads({}), Loads({}), BY_YAML)),
    Folder(f"a folder called `{FLAT}`, and `{YAML}`", {FLAT: None, YAML: _says(YAML)}, (NO_FILE, NO_FILE, BY_YAML)),
    Folder("`config.yml`", {"config.yml": _says(YAML)}, (NO_FLAT, NO_YAML, NO_YAML)),
)
