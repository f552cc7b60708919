"""Task executors that come, are killed and are replaced, on as many GPUs as they need together."""

from __future__ import annotations

from pathlib import Path

from benchmarks.executors import SCRIPT
from benchmarks.race import Churn, Contender, ours, race

EIGHT_ON_SIXTEEN = Churn(executors=8, gpus_each=2, gpus=16)


def test_8_of_2_gpus_that_churn_on_16_never_share_one_and_are_never_refused(tmp_path: Path) -> None:
    contender = ours(tmp_path / "state" / "ledger")
    (tally,) = race(EIGHT_ON_SIXTEEN, (contender,), folder=tmp_path / "bin", seconds=6, seed=1)
    assert tally.granted > 20, "the machine is too slow to show anything"
    assert (tally.double, tally.refused, tally.failed, tally.late) == (0, 0, 0, 0), tally.faults


def test_the_same_without_a_ledger_is_seen_to_hand_gpus_out_twice(tmp_path: Path) -> None:
    uncoordinated = Contender("uncoordinated", SCRIPT, ("--backend", "simulated:16"), refusal=69)
    (tally,) = race(EIGHT_ON_SIXTEEN, (uncoordinated,), folder=tmp_path / "bin", seconds=2, seed=1)
    assert tally.double > 0
