"""The rules: owners start, ask, give back, die and start again; operators reclaim and look; GPUs come and go.

A host whose last GPU is gone is left out: the command asks such a driver again for two seconds.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from tests.model import ledger_file, predictions
from tests.model.cards import FAILURES, HEALTHY, INDEXES, NUMBER, VANISHED, Card, uuid_of
from tests.model.stage import Stage, one_of
from tests.model.town import PIDS
from tests.model.values import ALIVE, DONE, Held, Owner

RESOURCES = ("gpu", "more")

_caller = one_of(lambda machine: list(machine.town.running))
_likely_holder = one_of(lambda machine: [*[pid for pid, _, _ in machine.allotments()] * 2, *machine.town.running])
_has_callers = precondition(lambda machine: machine.town.running)
_ways_to_be_lost = st.sampled_from((VANISHED, *FAILURES))
_sometimes = st.sampled_from((False, False, True))


class EmptyHost(Stage):
    """Everything begins with no ledger and no folder for it."""

    # Owners

    @initialize()
    def start_all(self) -> None:
        for pid in PIDS:
            self.start_owner(pid)

    @precondition(lambda machine: machine.town.free_pids())
    @rule(pid=one_of(lambda machine: machine.town.free_pids()))
    def start(self, pid: int) -> None:
        self.start_owner(pid)

    @_has_callers
    @rule(
        pid=_caller,
        amount=st.sampled_from((1, 2, 3, 0)),
        resource=st.sampled_from(RESOURCES),
        check_dead=st.booleans(),
        bare=st.booleans(),
    )
    def ask(self, pid: int, amount: int, resource: str, check_dead: bool, bare: bool) -> None:
        caller = self.town.running[pid]
        words = [str(amount), "null"] if bare else ["allocate", str(amount)]
        words += ["--resource", resource] if resource != "gpu" else []
        words += ["--check-dead"] if check_dead else []
        expected = predictions.allocate(
            self.records,
            self.cards.healthy(),
            caller,
            resource,
            amount,
            check_dead=check_dead,
            liveness=self.town.liveness,
        )
        self.agree_on_grant(caller, self.run_as_owner(pid, *words), expected)

    @_has_callers
    @rule(pid=_caller, resource=st.sampled_from(RESOURCES), check_dead=st.booleans(), too_many=_sometimes)
    def ask_for_all_that_is_left(self, pid: int, resource: str, check_dead: bool, too_many: bool) -> None:
        left = self.left(check_dead=check_dead)
        self.ask(pid, left + too_many, resource, check_dead, bare=True)

    @precondition(lambda machine: machine.town.running and machine.left(check_dead=True) > machine.left())
    @rule(pid=_caller, resource=st.sampled_from(RESOURCES), number=st.integers(1, NUMBER))
    def ask_for_what_the_dead_left(self, pid: int, resource: str, number: int) -> None:
        amount = min(self.left() + number, self.left(check_dead=True))
        self.ask(pid, amount, resource, check_dead=True, bare=True)

    @precondition(lambda machine: machine.allotments())
    @rule(allotment=one_of(lambda machine: machine.allotments()), more=_sometimes, check_dead=_sometimes)
    def ask_again(self, allotment: tuple[int, str, int], more: bool, check_dead: bool) -> None:
        pid, resource, amount = allotment
        self.ask(pid, amount + more, resource, check_dead, bare=True)

    @precondition(lambda machine: machine.allotments() and len(machine.cards.in_state(HEALTHY)) > 1)
    @rule(allotment=one_of(lambda machine: machine.allotments()), how=_ways_to_be_lost)
    def lose_one_of_them_and_ask_again(self, allotment: tuple[int, str, int], how: str) -> None:
        pid, resource, amount = allotment
        kind = (self.town.running[pid], resource)
        own = {uuid for uuid, held in self.records.items() if (held.owner, held.resource) == kind}
        there = [number for number in self.cards.in_state(HEALTHY) if uuid_of(number) in own]
        if there:
            self.lose_a_gpu(there[0], how)
        self.ask(pid, amount, resource, check_dead=True, bare=True)

    @precondition(lambda machine: machine.allotments())
    @rule(allotment=one_of(lambda machine: machine.allotments()), indexes=st.permutations(INDEXES))
    def ask_again_after_a_renumbering(self, allotment: tuple[int, str, int], indexes: list[int]) -> None:
        self.renumber_the_gpus(indexes)
        self.ask_again(allotment, more=False, check_dead=False)

    @precondition(lambda machine: machine.allotments())
    @rule(pid=_caller, word=st.sampled_from(("deallocateAll", "release 2")))
    def give_back(self, pid: int, word: str) -> None:
        caller = self.town.running[pid]
        result = self.run_as_owner(pid, *word.split())
        assert (result.code, result.out, result.err) == (DONE, "", "")
        left = predictions.deallocate_all(self.records, caller)
        self.town.untell(self.records.keys() - left.keys())
        self.records = left

    @_has_callers
    @rule(pid=_likely_holder, reaped=_sometimes)
    def die(self, pid: int, reaped: bool) -> None:
        self.namespace.kill(pid)
        self.town.end(pid)
        if reaped:
            self.reap(pid)

    @_has_callers
    @rule(pid=_likely_holder)
    def restart_with_the_same_pid(self, pid: int) -> None:
        self.die(pid, reaped=True)
        self.start_owner(pid)

    @precondition(lambda machine: machine.town.zombies)
    @rule(pid=one_of(lambda machine: sorted(machine.town.zombies)))
    def reap(self, pid: int) -> None:
        self.namespace.reap(pid)
        self.town.zombies.remove(pid)

    @precondition(lambda machine: machine.town.whole_pids())
    @rule(pid=one_of(lambda machine: machine.town.whole_pids()))
    def lose_the_main_thread(self, pid: int) -> None:
        self.namespace.end_main_thread(pid)
        self.town.without_main_thread.add(pid)

    # Operators

    @rule(words=one_of(lambda machine: machine.operations()))
    def operate(self, words: tuple[str, ...]) -> None:
        if words[0] == "status":
            self.agree_on_status(self.run_as_operator(*words))
            return
        picks = len(words) > 2
        expected = predictions.reclaim(
            self.records,
            picked=(lambda held: words[1:3] in names_of(held)) if picks else None,
            force="--force" in words,
            liveness=self.town.liveness,
            unjudged=self._unjudged(),
        )
        self.agree_on_reclaim(self.run_as_operator(*words), expected, force="--force" in words)

    # GPUs

    @precondition(lambda machine: len(machine.cards.in_state(HEALTHY)) > 1)
    @rule(number=one_of(lambda machine: machine.cards.in_state(HEALTHY)), how=_ways_to_be_lost)
    def lose_a_gpu(self, number: int, how: str) -> None:
        self.cards.put(number, how)

    @precondition(lambda machine: machine.cards.in_state(VANISHED, *FAILURES))
    @rule(
        number=one_of(lambda machine: machine.cards.in_state(VANISHED, *FAILURES)),
        index=one_of(lambda machine: machine.cards.free_indexes()),
    )
    def regain_a_gpu(self, number: int, index: int) -> None:
        self.cards.put_back(number, index)

    @rule(indexes=st.permutations(INDEXES))
    def renumber_the_gpus(self, indexes: list[int]) -> None:
        self.cards.renumber(indexes[:NUMBER])

    # What the steps above choose from

    def left(self, *, check_dead: bool = False) -> int:
        """How many GPUs could be handed out now."""
        return len(predictions.available(self.records, self.cards.healthy(), self.town.liveness, check_dead=check_dead))

    def allotments(self) -> list[tuple[int, str, int]]:
        """PID, resource and amount of what running owners hold."""
        live = [held for held in self.records.values() if self.town.liveness(held.owner) == ALIVE]
        amounts = Counter((held.owner.pid, held.resource) for held in live)
        return [(pid, resource, amount) for (pid, resource), amount in amounts.items()]

    def operations(self) -> list[tuple[str, ...]]:
        """What an operator may run. Names that fit several owners or GPUs are left to ``test_reclaim_by_name``."""
        names = {name for held in self.records.values() for name in names_of(held)}
        picks = sorted(name for name in [*names, ("--owner", str(PIDS[0])), ("--gpu", "7")] if self._is_clear(name))
        return [
            *[("status", "--json")] * 4,
            *[("reclaim",), ("reclaim", "--json")],
            *[("reclaim", *pick) for pick in picks],
            *[("reclaim", *pick, "--force") for pick in picks[::2]],
        ]

    def _unjudged(self) -> set[str]:
        """Recorded GPUs that are not listed while the driver complains of some: nobody knows what uses them."""
        listed = {gpu.uuid for gpu in self.cards.healthy()}
        return set(self.records) - listed if self.cards.in_state(*FAILURES) else set()

    def _is_clear(self, name: tuple[str, str]) -> bool:
        """Whether a name fits one owner or GPU at most, and a GPU by its index of old as by that of today."""
        option, value = name
        named = {uuid for uuid, held in self.records.items() if name in names_of(held)}
        if option == "--owner":
            return len({self.records[uuid].owner for uuid in named}) <= 1
        now = {gpu.uuid: gpu.index for gpu in self.cards.healthy()}
        shown = {uuid for uuid in self.records if value in (uuid, str(now.get(uuid)))}
        return named == shown and len(named) <= 1


def names_of(held: Held) -> set[tuple[str, str]]:
    """The options of ``reclaim`` that pick a record."""
    return {("--owner", str(held.owner.pid)), ("--gpu", held.uuid), ("--gpu", str(held.index))}


# Owners that the ledger holds before the first step, by what is known of them.
ANOTHER_NAMESPACE, ANOTHER_BOOT, ENDED = "another PID namespace", "another boot", "ended"
_inherited = st.tuples(
    st.sampled_from(range(NUMBER + 1)),  # one GPU that this host never had
    st.sampled_from((ANOTHER_NAMESPACE, ANOTHER_BOOT, ENDED)),
    st.sampled_from(PIDS),
    st.sampled_from(RESOURCES),
)


class InheritedLedger(EmptyHost):
    """Everything begins with a ledger that others left behind; their PIDs are in use here, too."""

    @initialize(left=st.lists(_inherited, min_size=1, max_size=4, unique_by=lambda record: record[0]))
    def inherit(self, left: list[tuple[int, str, int, str]]) -> None:
        for number, kind, pid, resource in left:
            card = Card(number, number).seen
            held = Held(card.uuid, card.index, card.pci_address, resource, self._stranger(kind, pid))
            self.records = {**self.records, card.uuid: held}
            if kind == ANOTHER_NAMESPACE:
                self.unprovable.add(card.uuid)
        ledger_file.write(self.ledger, self.records)

    def _stranger(self, kind: str, pid: int) -> Owner:
        boot_id = "00000000-0000-4000-8000-000000000000" if kind == ANOTHER_BOOT else self.namespace.boot_id
        outside = Path("/proc/self/ns/pid").stat().st_ino  # the test's own namespace
        namespace = self.namespace.pid_namespace if kind == ENDED else outside
        return Owner(pid, 1, boot_id, namespace, os.getuid(), "java")
