"""What stands at a path: nothing, a file or a symbolic link, with its owner and mode."""

from __future__ import annotations

import hashlib
import os
import stat
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

MARKER = "Managed by Ansible: flinkops.gpu"  # a file with it is ours even if no record says so
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True)
class State:
    """A file has ``content``, a symbolic link a ``target`` and no mode of its own; nothing has neither."""

    content: bytes | None = None
    target: str | None = None
    mode: int = 0
    uid: int = 0
    gid: int = 0

    @property
    def exists(self) -> bool:
        """Whether there is anything."""
        return self.content is not None or self.target is not None

    @property
    def fingerprint(self) -> str:
        """What tells one content from another, whatever its mode and owner."""
        if self.content is not None:
            return f"file:{hashlib.sha256(self.content).hexdigest()}"
        return "" if self.target is None else f"link:{self.target}"

    @property
    def is_marked(self) -> bool:
        """Whether it is a file with the collection's marker."""
        return self.content is not None and MARKER.encode() in self.content

    def text(self, *, with_attributes: bool) -> str:
        """What ``--diff`` shows of it."""
        if not self.exists:
            return ""
        attributes = f"mode {self.mode:04o}, owner {self.uid}:{self.gid}\n" if with_attributes else ""
        content = f"link to {self.target}\n" if self.content is None else self.content.decode(errors="replace")
        return attributes + content


NOTHING = State()


def look(path: str) -> State:
    """The state of a path, whose last component is not followed; ``FilingError`` if it is neither file nor link."""
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return NOTHING
    if stat.S_ISLNK(found.st_mode):
        target = os.readlink(path)  # exactly as it is: a Path would tidy it
        return State(target=target, uid=found.st_uid, gid=found.st_gid)
    if not stat.S_ISREG(found.st_mode):
        kind = "a folder" if stat.S_ISDIR(found.st_mode) else "neither a file nor a link"
        raise FilingError(f"{path} is {kind}: move it away, then run again")
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        return State(file.read(), mode=stat.S_IMODE(found.st_mode), uid=found.st_uid, gid=found.st_gid)
