"""The users and groups that the role made on a host, and whether what has these names now still is that.

A user of the role's has a comment of its own. A group can't have one, so its gid is noted before it is made.
"""

from __future__ import annotations

import grp
import pwd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

COMMENT = "made by flinkops.gpu"
HOME = "/nonexistent"
# Of system groups on every platform, and where neither groupadd(8) nor addgroup(8) looks first.
_GIDS = range(300, 500)


def look(made: Sequence[str]) -> dict[str, Any]:
    """Which ``users`` and ``groups`` are the role's, what of its notes is ``kept`` and why, and a ``free_gid``.

    A user is known even if the record was lost. A group that others need is kept, also one that the role made.
    """
    people = pwd.getpwall()
    users = [each.pw_name for each in people if not _why_not_ours(each)]
    others = [each for each in people if each.pw_name not in users]
    reasons = {note: _why_user_stays(note, others, users) for note in made if note.startswith("user ")}
    reasons.update({note: _why_group_stays(note, others) for note in made if note.startswith("group ")})
    return {
        "users": users,
        "groups": [note.split(" ")[1] for note, why in reasons.items() if note.startswith("group ") and not why],
        "kept": {note: why for note, why in reasons.items() if why},
        "free_gid": next((gid for gid in _GIDS if not _is_taken(gid)), None),
    }


def _why_not_ours(person: pwd.struct_passwd) -> str:
    if person.pw_gecos != COMMENT:
        return f"its comment is {person.pw_gecos!r}, not {COMMENT!r}"
    return "" if person.pw_dir == HOME else f"its home is {person.pw_dir!r}, not {HOME!r}"


def _why_user_stays(note: str, others: Iterable[pwd.struct_passwd], users: Iterable[str]) -> str:
    name = note.partition(" ")[2]
    if name in users:
        return ""
    return next((_why_not_ours(each) for each in others if each.pw_name == name), "there is none any more")


def _why_group_stays(note: str, others: Iterable[pwd.struct_passwd]) -> str:
    _, name, gid = f"{note} ".split(" ")[:3]
    try:
        found = grp.getgrnam(name)
    except KeyError:
        return "there is none any more"
    if str(found.gr_gid) != gid:
        return f"its gid is {found.gr_gid}, so it is another one"
    members = [each.pw_name for each in others if each.pw_gid == found.gr_gid]
    return f"it is the primary group of {', '.join(members)}" if members else ""


def _is_taken(gid: int) -> bool:
    try:
        grp.getgrgid(gid)
    except KeyError:
        return False
    return True
