"""What is called on a host where owners are confined: pure data, with what each process may open before and after.

The host has four GPUs. An ``other`` owner lives on and holds GPU 0. The ``caller`` has a ``child``; the ``dead`` owner
held GPUs and has ended, in one scenario with a ``leftover`` of its that lives on. ``before`` and ``after`` are the GPUs
that each of them can open; who is in no confinement can open all.
"""

from __future__ import annotations

from dataclasses import dataclass

BACKEND = ("--isolate", "--backend", "simulated:4,nodes=/dev/nvidia%d")
NODES = tuple([f"/dev/nvidia{index}" for index in range(4)])
ALL = "0123"
OTHERS = ("other", ("1",))


@dataclass(frozen=True)
class Scenario:
    """A call in ``words`` on behalf of the caller, unless it is a ``reclaim``, after ``earlier`` ones.

    ``answer`` is a pattern of ``fnmatch``. ``interim`` is the state that its records have in the ledger while the
    caller is being confined; empty if it writes none.
    """

    name: str
    words: tuple[str, ...]
    answer: str
    before: str  # what the caller and its child can open
    after: str
    interim: str = ""
    earlier: tuple[tuple[str, tuple[str, ...]], ...] = ()
    leftover: tuple[str, str] | None = None  # the same of the dead owner's leftover

    def __str__(self) -> str:
        return self.name


SCENARIOS = (
    Scenario("first", words=("2",), answer="0,1\n", before=ALL, after="12", interim="joining"),
    Scenario(
        "second",
        earlier=(("caller", ("1",)),),
        words=("1", "--resource", "more"),
        answer="1\n",
        before="1",
        after="12",
        interim="pending",
    ),
    Scenario(
        "take-over",
        earlier=(("dead", ("3",)),),
        words=("2", "--check-dead"),
        answer="0,1\n",
        before=ALL,
        after="12",
        interim="joining",
    ),
    Scenario(
        "take-over-of-what-is-busy",
        earlier=(("dead", ("2",)),),
        words=("3", "--check-dead", "--take-busy"),
        answer="0,1,2\n",
        before=ALL,
        after="123",
        interim="joining",
        leftover=("12", ""),
    ),
    Scenario("deallocate", earlier=(("caller", ("2",)),), words=("deallocateAll",), answer="", before="12", after=""),
    Scenario(
        "reclaim",
        earlier=(("caller", ("1",)), ("dead", ("2",))),
        words=("reclaim",),
        answer="reclaimed GPU 2 *\nreclaimed GPU 3 *\n",
        before="1",
        after="1",
    ),
    Scenario("repeated", earlier=(("caller", ("2",)),), words=("2",), answer="0,1\n", before="12", after="12"),
)
