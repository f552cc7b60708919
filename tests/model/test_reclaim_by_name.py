"""An operator names an owner or a GPU, and the name fits several: nothing else than what was meant is freed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.model.cards import NUMBER, Cards, uuid_of
from tests.model.namespace import CannotUnshareError, Namespace, unshare_words
from tests.support.script import PATH, Result

PID, OTHER_PID = 300, 400


class Host:
    """Six GPUs, a namespace with owners, and a ledger."""

    def __init__(self, folder: Path, cards: Cards, namespace: Namespace) -> None:
        self.cards = cards
        self.namespace = namespace
        self._options = ("--backend", "nvidia-smi", "--ledger", str(folder / "state" / "ledger"))

    def call(self, pid: int, *words: str) -> Result:
        return self.namespace.call(pid, *words, *self._options)

    def operate(self, *words: str) -> Result:
        return self.namespace.operate(*words, *self._options)

    def held(self) -> list[str]:
        """The UUIDs in the ledger."""
        return [record["uuid"] for record in json.loads(self.operate("status", "--json").out)["records"]]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    try:
        unshare_words()
    except CannotUnshareError as error:
        pytest.skip(str(error))
    cards = Cards(tmp_path / "bin")
    with Namespace(f"{tmp_path / 'bin'}:{PATH}") as namespace:
        yield Host(tmp_path, cards, namespace)


def test_a_pid_that_fits_a_dead_and_a_live_owner_does_not_cost_the_live_one_its_gpus(host: Host) -> None:
    host.namespace.start(PID)
    assert host.call(PID, "2").out == "0,1\n"
    host.namespace.kill(PID)
    host.namespace.reap(PID)
    host.namespace.start(PID)
    assert host.call(PID, "1").out == "2\n"
    host.operate("reclaim", "--owner", str(PID), "--force")
    assert uuid_of(2) in host.held()


def test_an_index_means_the_gpu_that_has_it_now(host: Host) -> None:
    host.namespace.start(PID)
    host.namespace.start(OTHER_PID)
    assert host.call(PID, "1").out == "0\n"
    host.cards.renumber([5, 0, 1, 2, 3, 4])  # the GPU after it slides into its index
    assert host.call(OTHER_PID, "1").out == "0\n"
    assert host.operate("reclaim", "--gpu", "0", "--force").code == 0
    assert host.held() == [uuid_of(0)]
    assert host.operate("reclaim", "--gpu", "0", "--force").code == 64


def test_an_index_frees_the_gpu_that_status_shows_under_it_or_none(host: Host) -> None:
    host.namespace.start(PID)
    host.namespace.start(OTHER_PID)
    assert host.call(PID, "1").out == "0\n"
    assert host.call(OTHER_PID, "1").out == "1\n"
    host.cards.renumber([1, 0, *range(2, NUMBER)])
    (shown,) = re.findall(r"^0 +(GPU-\S+)", host.operate("status").out, re.MULTILINE)
    before = set(host.held())
    host.operate("reclaim", "--gpu", "0", "--force")
    assert before - set(host.held()) <= {shown}
