"""The lists of the v1 ``devices`` controller: a pure model of what one holds and of what it should hold.

Source: Documentation/admin-guide/cgroup-v1/devices.rst. Of a cgroup whose list is ``a *:* rwm`` everything is open but
hidden exceptions, which a write to ``devices.deny`` adds to. Any other is a list of what is open; there a write to
``devices.deny`` takes away entries of exactly those numbers, and is accepted without effect where a wider entry
lets the device pass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from flink_gpu_discovery.isolation.rules import Rules

Key = tuple[str, str, str]  # type "b" or "c", major, minor, of which the numbers may be "*"
Entries = dict[Key, str]  # access, out of "rwm"

_ANY = "*"
_MOST_MAJORS = 512  # CHRDEV_MAJOR_MAX in include/linux/fs.h
_OPENING = "rw"


def allows_everything(text: str) -> bool:
    """Whether the content of ``devices.list`` means "all but hidden exceptions"."""
    return text.startswith("a ")


def parse(text: str) -> Entries:
    """The entries of a list of what is open; ``ValueError`` for anything else."""
    entries: Entries = {}
    for line in text.splitlines():
        kind, numbers, access = line.split(" ")
        major, colon, minor = numbers.partition(":")
        if kind not in ("b", "c") or not colon or access.strip("rwm"):
            raise ValueError(f"{line[:40]!r} is no entry of a device list")
        _add(entries, (kind, major, minor), access)
    return entries


def narrowed(entries: Entries, rules: Rules) -> Entries:
    """What is left of a list of what is open once ``rules`` hold in it: never more than it was.

    A wildcard that covers a GPU's major is replaced by entries for the other majors, and for what is allowed of this
    one. Entries that let nothing be opened (``m`` alone) stay.
    """
    left: Entries = {}
    closed = {*rules.classes, *[major for major, _ in rules.denied]}
    for (kind, major, minor), access in entries.items():
        if kind != "c" or not _opens(access):
            _add(left, (kind, major, minor), access)
        elif major == _ANY:
            for number in range(_MOST_MAJORS):
                _narrow(left, closed, rules, number, minor, access)
        else:
            _narrow(left, closed, rules, int(major), minor, access)
    return left


def _narrow(left: Entries, closed: set[int], rules: Rules, major: int, minor: str, access: str) -> None:
    if major not in closed:
        _add(left, ("c", str(major), minor), access)
        return
    for allowed_major, allowed_minor in rules.allowed:
        if allowed_major == major and minor in (_ANY, str(allowed_minor)):
            _add(left, ("c", str(major), str(allowed_minor)), access)


def _add(entries: Entries, key: Key, access: str) -> None:
    together = entries.get(key, "") + access
    entries[key] = "".join([letter for letter in "rwm" if letter in together])


def _opens(access: str) -> bool:
    return any([letter in access for letter in _OPENING])


def changes(present: Entries, wanted: Entries) -> tuple[list[str], list[str]]:
    """The lines to write to ``devices.deny`` and to ``devices.allow`` that turn one list into the other."""
    deny = [_line(key, access) for key, access in _missing(present, wanted)]
    allow = [_line(key, access) for key, access in _missing(wanted, present)]
    return deny, allow


def _missing(of: Entries, in_: Entries) -> Iterable[tuple[Key, str]]:
    for key, access in sorted(of.items()):
        lacking = "".join([letter for letter in access if letter not in in_.get(key, "")])
        if lacking:
            yield key, lacking


def exceptions(rules: Rules) -> tuple[list[str], list[str]]:
    """The same two lists where everything is open but exceptions: these can't be read back, so all are written."""
    deny = [_line(("c", str(major), str(minor)), "rwm") for major, minor in rules.denied]
    allow = [_line(("c", str(major), str(minor)), "rwm") for major, minor in rules.allowed]
    return deny, allow


def _line(key: Key, access: str) -> str:
    return f"{key[0]} {key[1]}:{key[2]} {access}"
