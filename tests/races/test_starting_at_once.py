"""Every task executor of a host starts at the same moment, as after a reboot."""

from __future__ import annotations

from pathlib import Path

from benchmarks.executors import SCRIPT, SYSTEM_PATH, Answer, Crew, Request
from benchmarks.ledger_text import read_ledger
from benchmarks.race import FLINK_LIMIT_MILLISECONDS

EXECUTORS = 64


def start_at_once(words: tuple[str, ...]) -> list[Answer]:
    answers: list[Answer] = []
    with Crew({"PATH": SYSTEM_PATH}) as crew:
        for executor in [crew.hire() for _ in range(EXECUTORS)]:
            executor.ask(Request((str(SCRIPT), *words)))
        while len(answers) < EXECUTORS:
            answers += [answer for _, answer in crew.step(seconds=30).answers]
    return answers


def test_64_that_start_at_once_on_64_gpus_all_get_one_of_their_own_within_flinks_limit(tmp_path: Path) -> None:
    ledger = tmp_path / "state" / "ledger"
    answers = start_at_once(("1", "--backend", f"simulated:{EXECUTORS}", "--ledger", str(ledger)))
    assert {answer.status for answer in answers} == {0}, [answer.errors for answer in answers if answer.status]
    assert sorted([int(answer.output) for answer in answers]) == list(range(EXECUTORS))
    assert max([answer.milliseconds for answer in answers]) < FLINK_LIMIT_MILLISECONDS
    recorded = read_ledger(ledger) or ()
    assert sorted([int(holding.index) for holding in recorded]) == list(range(EXECUTORS))
    assert len({holding.owner for holding in recorded}) == EXECUTORS


def test_64_that_start_at_once_on_16_gpus_share_them_out_to_the_last_one(tmp_path: Path) -> None:
    ledger = tmp_path / "state" / "ledger"
    answers = start_at_once(("1", "--backend", "simulated:16", "--ledger", str(ledger), "--check-dead"))
    granted = [int(answer.output) for answer in answers if answer.status == 0]
    assert sorted(granted) == list(range(16))
    assert {answer.status for answer in answers if not answer.output} == {69}
