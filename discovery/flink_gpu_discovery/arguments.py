"""The command line's grammar: words to a request, nothing else.

Hand-written, since ``argparse`` costs as much again as starting Python, and since Flink's calls (a bare
amount, a trailing ``null``) are no ordinary command line.
"""

from __future__ import annotations

from flink_gpu_discovery.errors import UsageError
from flink_gpu_discovery.given import Given
from flink_gpu_discovery.options import ALIASES, FLAGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_DISCOVERY = ("backend", "config", "debug", "deadline")
_FLINK = (
    *_DISCOVERY,
    "check-dead",
    "coordinate",
    "enable-coordination-mode",
    "id",
    "isolate",
    "ledger",
    "owner-pid",
    "resource",
    "take-busy",
    "wait",
)
# Flink hands its one list of arguments to both of FLIP-108's functions, so these take the same options.
OPTIONS_OF = {
    "allocate": _FLINK,
    "deallocateAll": _FLINK,
    "release": _FLINK,
    "inventory": (*_DISCOVERY, "json"),
    "status": (*_DISCOVERY, "isolate", "json", "ledger"),
    "doctor": (*_DISCOVERY, "coordinate", "isolate", "json", "ledger", "quick"),
    "reclaim": (*_DISCOVERY, "force", "gpu", "isolate", "json", "ledger", "owner", "take-busy"),
}
PRIVILEGED_OPTIONS_OF: dict[str, tuple[str, ...]] = {
    "allocate": ("resource",),
    "deallocateAll": (),
    "reclaim": (),
    "status": (),
}
_TAKES_AMOUNT = ("allocate", "release")
_LONGEST_VALUE = 4096


class Request:
    """What was asked for: a command, its amount (0 where it takes none), its options as written.

    ``topic`` is the command whose help is wanted, empty for the whole program's.
    """

    __slots__ = ("amount", "command", "given", "topic")

    def __init__(self, command: str, amount: int = 0, given: Given | None = None, topic: str = "") -> None:
        self.command: Final = command
        self.amount: Final = amount
        self.given: Final = given or Given(UsageError)
        self.topic: Final = topic


def parse(words: list[str]) -> Request:
    """Read the words after the program's name; ``UsageError`` for any that don't fit."""
    if words in (["--version"], ["--help"], ["help"]):
        return Request(words[0].lstrip("-"))
    if not words:
        raise UsageError("no command and no AMOUNT given", "see 'flink-gpu-discovery --help'")
    command, rest = _command(words)
    if command in OPTIONS_OF and rest == ["--help"] and words[0] == command:
        return Request("help", topic=command)
    amount, given = 0, Given(UsageError)
    if command in _TAKES_AMOUNT:
        amount, rest = _leading_amount(command, rest)
    _read_options(command, rest, given, OPTIONS_OF[command])
    return Request(command, amount, given)


def parse_privileged(words: list[str]) -> Request:
    """The grammar of the program that sudo lets a user run as root: a command, its amount, perhaps a resource.

    Nothing else can be said to it; everything else stands in the settings file.
    """
    if not words or words[0] not in PRIVILEGED_OPTIONS_OF:
        shown = _shown(words[0]) if words else "nothing"
        raise UsageError(f"unknown command {shown}", f"use one of {', '.join(PRIVILEGED_OPTIONS_OF)}")
    command, rest, amount, given = words[0], words[1:], 0, Given(UsageError)
    if command in _TAKES_AMOUNT:
        amount, rest = _leading_amount(command, rest)
    _read_options(command, rest, given, PRIVILEGED_OPTIONS_OF[command])
    return Request(command, amount, given)


def _leading_amount(command: str, words: list[str]) -> tuple[int, list[str]]:
    if not words or words[0].startswith("--"):
        raise UsageError(f"{command} needs an AMOUNT", f"for example 'flink-gpu-discovery {command} 2'")
    return _amount(words[0]), words[1:]


def _command(words: list[str]) -> tuple[str, list[str]]:
    """The command's name and the words after it; a bare amount is Flink's way to say ``allocate``."""
    first = words[0]
    if first in OPTIONS_OF:
        return first, words[1:]
    if first.startswith("--"):
        raise UsageError(f"{_shown(first)} stands before the command", "put the command or AMOUNT first")
    if first[:1].isalpha() and first.isascii():
        raise UsageError(
            f"unknown command {_shown(first)}", f"use an AMOUNT or one of {', '.join(OPTIONS_OF)}; see --help"
        )
    return "allocate", words


def _amount(word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= 4):
        raise UsageError(f"bad AMOUNT {_shown(word)}", "give a whole number from 0 to 9999 in ASCII digits")
    return int(word)


def _read_options(command: str, words: list[str], given: Given, known: tuple[str, ...]) -> None:
    remaining = iter(words)
    for word in remaining:
        if word == "null":  # Flink appends it when no discovery-script.args are configured
            continue
        written, equals, value = word.partition("=")
        name = ALIASES.get(written[2:], written[2:])
        if not written.startswith("--") or name not in known:
            raise _unknown(command, written if written.startswith("--") else word)
        if name in FLAGS:
            if equals:
                raise UsageError(f"{written} takes no value, got {_shown(value)}", f"write {written} alone")
            value = "yes"
        elif not equals:
            value = next(remaining, "")
        if not value or (value.startswith("--") and not equals):
            raise UsageError(f"{written} needs a value", f"see 'flink-gpu-discovery {command} --help'")
        if len(value) > _LONGEST_VALUE:
            raise UsageError(
                f"the value of {written} is {len(value)} characters long", f"the limit is {_LONGEST_VALUE}"
            )
        # --enable-coordination-mode is upstream's name for --coordinate, though it means more.
        doubled = "coordinate" if name == "enable-coordination-mode" else "enable-coordination-mode"
        if (name in ("coordinate", "enable-coordination-mode") and given.has(doubled)) or not given.add(
            name, value, written
        ):
            raise UsageError(f"{written} is given twice (or under two names)", "give it once")


def _unknown(command: str, word: str) -> UsageError:
    if word == "--enable-coordination":  # as Flink's documentation has it; upstream's script ignores it silently
        return UsageError(f"unknown option {word}", "write --enable-coordination-mode or --coordinate")
    kind = "option" if word.startswith("-") else "argument"
    return UsageError(f"unknown {kind} {_shown(word)} of {command}", f"see 'flink-gpu-discovery {command} --help'")


def _shown(word: str) -> str:
    return repr(word if len(word) <= 60 else word[:60] + "...")
