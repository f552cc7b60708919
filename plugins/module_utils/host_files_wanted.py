"""What shall stand at a path: the module's ``files``, checked, and tried by their validators."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.flinkops.gpu.plugins.module_utils import host_files_commands as commands
from ansible_collections.flinkops.gpu.plugins.module_utils.host_files_state import State
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_MODE = re.compile(r"0[0-7]{3}")


@dataclass(frozen=True)
class Wanted:
    """The state that shall stand at ``path``; ``validate`` is a command with ``%s`` for a file of that content."""

    path: str
    state: State
    validate: str = ""


def wanted_from(files: Iterable[Mapping[str, Any]]) -> tuple[Wanted, ...]:
    """The module's parameter, checked as a whole."""
    wanted = tuple(_wanted(each) for each in files)
    paths = [each.path for each in wanted]
    for path in paths:
        if paths.count(path) > 1:
            raise FilingError(f"files: {path} is named {paths.count(path)} times: name it once")
        if any(other.startswith(f"{path}/") for other in paths):
            raise FilingError(f"files: {path} is to be a file, and the folder of another one: move one of them")
    return wanted


def validate(wanted: Iterable[Wanted], folder: str, *, lenient: bool) -> list[str]:
    """Let each validator judge a file in ``folder``, which is private; ``FilingError`` at the first that refuses.

    ``lenient``: one whose program isn't there is passed over (check mode, before its package is installed). Says which.
    """
    passed_over = []
    for each in wanted:
        arguments = shlex.split(each.validate)
        program = shutil.which(arguments[0], path=commands.PATH) if arguments else None
        if program:
            _validate(each, [program, *arguments[1:]], folder)
        elif arguments and lenient:
            passed_over.append(f"skip the validation of {each.path}: {arguments[0]} isn't there yet")
        elif arguments:
            raise FilingError(f"{each.path} can't be validated: {arguments[0]} isn't there; install its package")
    return passed_over


def _wanted(file: Mapping[str, Any]) -> Wanted:
    path, command = str(file["path"]), str(file.get("validate") or "")
    if not path.startswith("/") or path.startswith("//") or os.path.normpath(path) != path or path == "/":
        raise FilingError(f"files: {path!r} is not an absolute path in its plain form")
    if command and ("%s" not in command or file.get("link") is not None):
        raise FilingError(f"files: validate of {path} is {command!r}: it takes a file, whose place is %s")
    return Wanted(path, _state(path, file), command)


def _state(path: str, file: Mapping[str, Any]) -> State:
    content, link, mode = file.get("content"), file.get("link"), str(file.get("mode") or "0644")
    if (content is None) == (link is None) or link == "":
        raise FilingError(f"files: {path} needs either content or link")
    if link is not None:
        return State(target=str(link))
    if not _MODE.fullmatch(mode):
        raise FilingError(f"files: mode of {path} is {mode!r}: write four octal digits in quotes, as '0644'")
    return State(str(content).encode(errors="surrogateescape"), mode=int(mode, 8))


def _validate(wanted: Wanted, command: list[str], folder: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as private:
        candidate = Path(private, Path(wanted.path).name)  # some validators go by the name
        candidate.write_bytes(wanted.state.content or b"")
        candidate.chmod(wanted.state.mode)
        verdict = commands.run([word.replace("%s", str(candidate)) for word in command])
    if verdict:
        raise FilingError(f"{wanted.path} was refused by {wanted.validate!r} ({verdict}); nothing was changed")
