"""A case: the text of a configuration file, and what each of Flink's two parsers makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from .readers import FLAT

GPU, FPGA = "external-resource.gpu.", "external-resource.fpga."
# A GPU and an FPGA: their amounts in a file, as settings, and as external resources that are in use.
BOTH = f"{GPU}amount: 2\n{FPGA}amount: 1\n"
AMOUNTS = {f"{GPU}amount": "2", f"{FPGA}amount": "1"}
RESOURCES = {"gpu": "2", "fpga": "1"}


@dataclass(frozen=True)
class Loads:
    """The settings as text, the external resources and their amounts.

    ``skipped`` are the numbers of lines that Flink warns of and leaves out. ``says`` is what it says of the external
    resources: a warning, or the error that keeps a TaskManager from starting although the file loads.
    """

    settings: dict[str, str]
    resources: dict[str, str] = field(default_factory=dict)
    skipped: tuple[int, ...] = ()
    says: str = ""


@dataclass(frozen=True)
class Refuses:
    """The file is not loaded. ``place`` is the line and column of the problem, where Flink names one."""

    reason: str
    place: tuple[int, int] | None = None


Answer: TypeAlias = Loads | Refuses


@dataclass(frozen=True)
class Case:
    """One text, under either name of the file."""

    name: str
    content: bytes
    flat: Answer
    yaml: Answer

    def answer(self, file: str) -> Answer:
        """What the parser of that file makes of the text."""
        return self.flat if file == FLAT else self.yaml


def case(name: str, text: str | bytes, flat: Answer, yaml: Answer | None = None) -> Case:
    """Describe a case; without ``yaml`` both parsers say the same."""
    return Case(name, text.encode() if isinstance(text, str) else text, flat, yaml or flat)


NULL = Refuses("NullPointerException: Value must not be null.")


def ignored(name: str) -> str:
    """Return Flink's warning of a name in `external-resources` that has no amount."""
    return f"The amount of the {name} should be configured. Will ignore that resource."


def named(value: str) -> dict[str, str]:
    """Return the settings of a file that names external resources and has the amounts of both."""
    return {"external-resources": value, **AMOUNTS}
