"""What the state machine plays on: the namespace, the cards, the ledger, and the checks after every step."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant

from tests.model import ledger_file
from tests.model.cards import Cards
from tests.model.namespace import Namespace
from tests.model.predictions import Grant, Reclaimed
from tests.model.town import Town
from tests.model.values import DONE, Owner, Records, in_file_order
from tests.support.script import PATH, Result

_MEMORY = "/dev/shm"  # a tmpfs, as /run is: no disk to wait for; where programs may not run at times

T = TypeVar("T")


def one_of(choices: Callable[[Any], Sequence[T]]) -> st.SearchStrategy[T]:
    """One of what the machine offers at the moment of the step."""
    return st.runner().flatmap(lambda machine: st.sampled_from(choices(machine)))


class Stage(RuleBasedStateMachine):
    """``records`` is what the model says the ledger holds."""

    # How often each kind of step ended how, over all examples; for the tests to print.
    tally: ClassVar[Counter[str]] = Counter()

    def __init__(self) -> None:
        super().__init__()
        self._stack = ExitStack()
        tools = self._folder(None)
        self.ledger = self._folder(_MEMORY if os.access(_MEMORY, os.W_OK) else None) / "state" / "ledger"
        self.cards = Cards(tools)
        self.namespace = self._stack.enter_context(Namespace(f"{tools}:{PATH}"))
        self.town = Town(self.namespace.boot_id, self.namespace.pid_namespace)
        self.records: Records = {}
        self.unprovable: set[str] = set()  # UUIDs that only force may free
        # A deadline that a busy machine keeps, too: no step here is meant to run into it.
        self._options = ("--backend", "nvidia-smi", "--ledger", str(self.ledger), "--deadline", "25")

    def _folder(self, place: str | None) -> Path:
        return Path(self._stack.enter_context(TemporaryDirectory(prefix="model-", dir=place)))

    def teardown(self) -> None:
        """End every process, remove every file."""
        self._stack.close()

    def start_owner(self, pid: int) -> Owner:
        """A new owner, under a PID that another may have had before."""
        owner = self.namespace.start(pid)
        self.town.begin(owner)
        return owner

    def run_as_owner(self, pid: int, *words: str) -> Result:
        """The owner runs the command."""
        return self._checked(lambda: self.namespace.call(pid, *words, *self._options), words[0])

    def run_as_operator(self, *words: str) -> Result:
        """An operator runs the command."""
        return self._checked(lambda: self.namespace.operate(*words, *self._options), words[0])

    def _checked(self, run: Callable[[], Result], name: str) -> Result:
        """What holds for every call: an error says why, prints no answer and changes nothing."""
        before = self._content()
        result = run()
        self.tally[f"{'allocate' if name.isdigit() else name} -> {result.code}"] += 1
        if result.code != DONE:
            assert (result.out, self._content()) == ("", before), result
            assert result.err.startswith("flink-gpu-discovery: "), result
            assert "internal error" not in result.err, result
        return result

    def agree_on_grant(self, owner: Owner, result: Result, expected: Grant) -> None:
        """The answer to ``allocate``, and that nobody else was told the same."""
        assert (result.code, result.out) == (expected.code, expected.out), result.err
        by_index = {str(gpu.index): gpu.uuid for gpu in self.cards.healthy()}
        told = {by_index[index] for index in result.out.strip().split(",") if index}
        self.town.tell(owner, told)
        assert not told & self.unprovable
        taken = [gpu for gpu in expected.newly if gpu.uuid in self.records]
        self.tally["GPUs taken over"] += len(taken)
        self.records = expected.records

    def agree_on_reclaim(self, result: Result, expected: Reclaimed, *, force: bool) -> None:
        """What ``reclaim`` says that it freed, as a text or as JSON."""
        told = re.findall(r"GPU-[0-9a-f-]{36}", result.out)
        assert (result.code, told) == (expected.code, [held.uuid for held in expected.freed]), result
        if force:
            self.town.untell(told)
            self.unprovable.difference_update(told)
        self.records = expected.records

    def agree_on_status(self, result: Result) -> None:
        """Every record, its owner's liveness, and where its GPU is now."""
        assert result.code == DONE, result.err
        index_now = {gpu.uuid: str(gpu.index) for gpu in self.cards.healthy()}
        told = [_told(record) for record in json.loads(result.out)["records"]]
        assert told == [
            (held.uuid, held.resource, held.owner, self.town.liveness(held.owner), index_now.get(held.uuid))
            for held in in_file_order(self.records)
        ]

    @invariant()
    def the_ledger_is_as_predicted(self) -> None:
        """Its records, and that what can't be proven dead is still in it; nothing else lies in the folder."""
        found = ledger_file.read(self.ledger)
        assert found == self.records
        assert self.unprovable <= found.keys()
        if self.ledger.parent.exists():
            names = {path.name for path in self.ledger.parent.iterdir()}
            assert names <= {self.ledger.name, f"{self.ledger.name}.lock"}

    def _content(self) -> bytes | None:
        return self.ledger.read_bytes() if self.ledger.exists() else None


def _told(record: dict[str, Any]) -> tuple[str, str, Owner, str, str | None]:
    """What ``status --json`` says of a record."""
    owner, now = dict(record["owner"]), record["gpu"]
    liveness = owner.pop("liveness")
    assert now["seen"] == (now["index"] is not None)
    assert now["fault"] is None
    return record["uuid"], record["resource"], Owner(**owner), liveness, now["index"]
