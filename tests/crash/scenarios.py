"""What is called on what ledger: pure data, with what each owner must get afterwards.

Words and texts hold places for the process ids of the ``{caller}``, an ``{other}`` owner that lives on, an ``{heir}``
that comes afterwards, and one that is ``{dead}``; and for the ``{ledger}``. The host has eight GPUs. Answers are
patterns of ``fnmatch``.
"""

from __future__ import annotations

from dataclasses import dataclass

BACKEND = ("--backend", "simulated:8")
UPSTREAM = "--enable-coordination-mode"
GONE = 4194304  # above pid_max of any running system's processes


@dataclass(frozen=True)
class Scenario:
    """One call, ``earlier`` calls and ``planted`` files before it, and what follows.

    ``from_old`` and ``from_new`` are the answers to the heir's call and then to the caller's repeated one,
    where the disturbed call left the ledger as it was, and where it completed.
    """

    name: str
    words: tuple[str, ...]
    answer: str
    from_old: tuple[str, str]
    from_new: tuple[str, str]
    earlier: tuple[tuple[str, ...], ...] = ()
    planted: tuple[tuple[str, str], ...] = ()
    heir_options: tuple[str, ...] = ()
    by_parent: bool = False  # the caller is the program's parent, rather than named by --owner-pid
    shared: bool = False  # the folder belongs to a group, of which the caller is no member and the heir is (needs root)

    def __str__(self) -> str:
        return self.name


def _two(owner: str, *options: str) -> tuple[str, ...]:
    return ("2", *options, "--owner-pid", f"{{{owner}}}")


def _deallocate(owner: str) -> tuple[str, ...]:
    return ("deallocateAll", "--owner-pid", f"{{{owner}}}")


_CUT_OFF = "#flink-gpu-ledger 1\tuuid\tindex\tpci_add"
_RECLAIMED = "reclaimed GPU 2 *\nreclaimed GPU 3 *\n"
_NOTHING = "nothing to reclaim ({ledger})\n"

SCENARIOS = (
    Scenario(
        name="first-call-ever",
        words=_two("caller"),
        answer="0,1\n",
        from_old=("0,1\n", "2,3\n"),
        from_new=("2,3\n", "0,1\n"),
    ),
    Scenario(
        name="first-call-in-a-groups-folder",
        words=_two("caller"),
        answer="0,1\n",
        from_old=("0,1\n", "2,3\n"),
        from_new=("2,3\n", "0,1\n"),
        shared=True,
    ),
    Scenario(
        name="beside-others",
        earlier=(_two("other"),),
        words=_two("caller"),
        answer="2,3\n",
        from_old=("2,3\n", "4,5\n"),
        from_new=("4,5\n", "2,3\n"),
    ),
    Scenario(
        name="by-the-parent",
        earlier=(_two("other"),),
        words=("2",),
        answer="2,3\n",
        from_old=("2,3\n", "4,5\n"),
        from_new=("4,5\n", "2,3\n"),
        by_parent=True,
    ),
    Scenario(
        name="take-over",
        earlier=(_two("other"), ("6", "--owner-pid", "{dead}")),
        words=_two("caller", "--check-dead"),
        answer="2,3\n",
        from_old=("2,3\n", "4,5\n"),
        from_new=("4,5\n", "2,3\n"),
        heir_options=("--check-dead",),
    ),
    Scenario(
        name="repeated",
        earlier=(_two("caller"),),
        words=_two("caller"),
        answer="0,1\n",
        from_old=("2,3\n", "0,1\n"),
        from_new=("2,3\n", "0,1\n"),
    ),
    Scenario(
        name="leftover",
        earlier=(_two("other"),),
        planted=(("ledger.new", _CUT_OFF),),
        words=_two("caller"),
        answer="2,3\n",
        from_old=("2,3\n", "4,5\n"),
        from_new=("4,5\n", "2,3\n"),
    ),
    Scenario(
        name="migration",
        planted=(("ledger", f"1 {{other}}\n3 {GONE}\n"),),
        words=_two("caller", UPSTREAM),
        answer="0,2\n",
        from_old=("0,2\n", "3,4\n"),
        from_new=("3,4\n", "0,2\n"),
        heir_options=(UPSTREAM,),
    ),
    Scenario(
        name="deallocate-beside-others",
        earlier=(_two("other"), _two("caller")),
        words=_deallocate("caller"),
        answer="",
        from_old=("4,5\n", ""),
        from_new=("2,3\n", ""),
    ),
    Scenario(
        name="deallocate-the-last",
        earlier=(_two("caller"),),
        words=_deallocate("caller"),
        answer="",
        from_old=("2,3\n", ""),
        from_new=("0,1\n", ""),
    ),
    Scenario(
        name="deallocate-by-the-parent",
        earlier=(_two("other"), _two("caller")),
        words=("deallocateAll",),
        answer="",
        from_old=("4,5\n", ""),
        from_new=("2,3\n", ""),
        by_parent=True,
    ),
    Scenario(
        name="reclaim",
        earlier=(_two("other"), _two("dead")),
        words=("reclaim",),
        answer=_RECLAIMED,
        from_old=("4,5\n", _RECLAIMED),
        from_new=("2,3\n", _NOTHING),
    ),
    Scenario(
        name="reclaim-a-leftover",
        earlier=(_two("other"),),
        planted=(("ledger.new", _CUT_OFF),),
        words=("reclaim",),
        answer=_NOTHING,
        from_old=("2,3\n", _NOTHING),
        from_new=("2,3\n", _NOTHING),
    ),
)
