"""Small ``/bin/sh`` scripts that stand in for command-line tools, and the ways in which they end.

They are called often in benchmarks, so they start nothing but the shell itself on the way to an answer.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from enum import Enum
from pathlib import Path

# Long enough to be for ever to any caller with a deadline, short enough to leave no litter for long.
HANG_SECONDS = 60


class Ending(Enum):
    """What a tool does once it has printed what it prints."""

    EXIT = "exit"
    HANG = "hang"
    HANG_IGNORING_SIGTERM = "hang ignoring SIGTERM"
    # The tool itself exits, but a process that it started keeps the pipe open.
    HANG_HOLDING_PIPE = "hang holding the pipe"
    FLOOD = "flood"


def emit(data: bytes, stream: int = 1) -> str:
    """A command that writes exactly these bytes, whatever they are."""
    redirect = "" if stream == 1 else f" >&{stream}"
    return f"printf -- '{''.join(map(_escape, data))}'{redirect}"


def _escape(byte: int) -> str:
    char = chr(byte)
    if char == "%":
        return "%%"
    return char if char.isascii() and char.isprintable() and char not in "'\\" else f"\\{byte:03o}"


def prepare(ending: Ending) -> list[str]:
    """The commands to begin with: a signal may come before anything is printed."""
    return ["trap '' TERM INT HUP"] if ending is Ending.HANG_IGNORING_SIGTERM else []


def finish(ending: Ending, exit_code: int, flood: bytes) -> list[str]:
    """The commands that end the script."""
    if ending in (Ending.HANG, Ending.HANG_IGNORING_SIGTERM):
        return [f"exec sleep {HANG_SECONDS}"]
    if ending is Ending.FLOOD:
        return [f"exec timeout {HANG_SECONDS} yes {shlex.quote(flood.decode('ascii'))}"]
    if ending is Ending.HANG_HOLDING_PIPE:
        return [f"sleep {HANG_SECONDS} &", f"exit {exit_code}"]
    return [f"exit {exit_code}"]


def log_call(log: Path | None) -> list[str]:
    """Append a line with the arguments of each call, so that a test can count and read them."""
    return [] if log is None else [f"""printf '%s\\n' "$*" >>{shlex.quote(str(log))}"""]


def delay(seconds: float) -> list[str]:
    """Take so long before answering."""
    return [f"sleep {seconds:g}"] if seconds else []


def install_script(folder: Path, name: str, lines: Iterable[str]) -> Path:
    """Write an executable script into a folder that is meant for PATH."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text("\n".join(["#!/bin/sh", *lines]) + "\n", encoding="ascii")
    path.chmod(0o755)
    return path
