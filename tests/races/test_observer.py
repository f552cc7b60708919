"""The judge of the races: what it counts, and what it must not."""

from __future__ import annotations

import pytest

from benchmarks.observer import Observer


@pytest.fixture
def observer() -> Observer:
    """Of a host with 4 GPUs, on which ``first`` was granted 0 and 1."""
    observer = Observer(gpus=4)
    observer.asks("first", 2)
    assert observer.granted("first", ["0", "1"]) == {}
    return observer


def test_a_gpu_that_a_live_owner_holds_is_granted_twice(observer: Observer) -> None:
    observer.asks("second", 2)
    assert observer.granted("second", ["1", "2"]) == {"1": "first"}


def test_a_repeated_answer_is_no_double_grant(observer: Observer) -> None:
    observer.asks("first", 2)
    assert observer.granted("first", ["0", "1"]) == {}


def test_a_takeover_once_the_signal_was_sent_is_no_double_grant(observer: Observer) -> None:
    observer.asks("second", 2)
    observer.kills("first")
    assert observer.granted("second", ["0", "1"]) == {}


def test_a_takeover_while_the_owner_gives_back_is_no_double_grant(observer: Observer) -> None:
    observer.asks("second", 2)
    observer.releases("first")
    assert observer.granted("second", ["0", "1"]) == {}


def test_a_killed_retry_leaves_the_owner_with_what_it_holds(observer: Observer) -> None:
    observer.asks("first", 2)
    observer.unanswered("first")
    observer.asks("second", 1)
    assert observer.granted("second", ["0"]) == {"0": "first"}


def test_a_refusal_is_wrong_while_enough_are_free(observer: Observer) -> None:
    observer.asks("second", 2)
    assert observer.refused("second")


def test_a_refusal_is_right_when_too_few_are_free(observer: Observer) -> None:
    observer.asks("second", 3)
    assert not observer.refused("second")


def test_a_refusal_may_be_right_if_others_asked_meanwhile(observer: Observer) -> None:
    observer.asks("second", 2)
    observer.asks("third", 1)
    observer.kills("third")
    observer.killed("third")
    assert not observer.refused("second")


def test_a_refusal_may_be_right_if_an_owner_lived_when_it_was_asked_for(observer: Observer) -> None:
    observer.kills("first")
    observer.asks("second", 4)
    observer.killed("first")
    assert not observer.refused("second")
    observer.asks("second", 4)
    assert observer.refused("second")


def test_what_was_given_back_or_refused_is_free(observer: Observer) -> None:
    observer.releases("first")
    observer.released("first")
    observer.asks("second", 9)
    assert not observer.refused("second")
    observer.asks("third", 4)
    assert observer.refused("third")
