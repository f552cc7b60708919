"""Who gets which GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flink_gpu_discovery import allocation
from flink_gpu_discovery.allocation import Decision
from flink_gpu_discovery.errors import TooFewGpusError, UsageError
from flink_gpu_discovery.models import Gpu, Owner, Record
from tests.support.samples import gpu, owner, record

GPUS = tuple([gpu(index) for index in range(4)])
ME = owner(100)
OTHER = owner(200)


def decide(
    amount: int,
    records: tuple[Record, ...] = (),
    *,
    gpus: tuple[Gpu, ...] = GPUS,
    resource: str = "gpu",
    is_dead: Callable[[Owner], bool] | None = None,
    still_used: Callable[[Record, Gpu], str] = lambda record, gpu: "",
    keep_ordinals: bool = False,
) -> Decision:
    return allocation.decide(
        gpus=gpus,
        records=records,
        owner=ME,
        resource=resource,
        amount=amount,
        now="now",
        is_dead=is_dead,
        still_used=still_used,
        keep_ordinals=keep_ordinals,
    )


def indexes(decision: Decision) -> list[str]:
    return [gpu.index for gpu in decision.gpus]


def test_default_script_gives_the_lowest_indexes() -> None:
    assert [gpu.index for gpu in allocation.first_healthy(GPUS, 2)] == ["0", "1"]


def test_default_script_leaves_out_faulty_gpus() -> None:
    gpus = (gpu(0, fault="row remapping failed"), *GPUS[1:])
    assert [gpu.index for gpu in allocation.first_healthy(gpus, 2)] == ["1", "2"]


def test_default_script_refuses_less_than_the_amount_and_says_what_it_saw() -> None:
    with pytest.raises(TooFewGpusError, match="5 asked for, 4 seen, 4 healthy"):
        allocation.first_healthy(GPUS, 5)


def test_unrecorded_gpus_are_given_lowest_first() -> None:
    decision = decide(2, (record(GPUS[0], OTHER),))
    assert indexes(decision) == ["1", "2"]
    assert {entry.uuid for entry in decision.records} == {gpu.uuid for gpu in GPUS[:3]}
    assert {entry.uuid for entry in decision.granted} == {gpu.uuid for gpu in GPUS[1:3]}


def test_a_repeated_call_returns_the_same_gpus_and_grants_nothing() -> None:
    first = decide(2)
    again = decide(2, first.records)
    assert indexes(again) == indexes(first)
    assert again.granted == ()
    assert again.records == first.records


def test_a_repeated_call_follows_an_index_that_moved() -> None:
    first = decide(2)
    moved = (gpu(0, uuid=GPUS[1].uuid), gpu(3, uuid=GPUS[0].uuid))
    assert indexes(decide(2, first.records, gpus=moved)) == ["0", "3"]


def test_another_amount_for_the_same_resource_is_refused() -> None:
    with pytest.raises(UsageError, match="already holds 2 GPUs"):
        decide(3, decide(2).records)


def test_two_resources_of_one_owner_get_different_gpus() -> None:
    decision = decide(2, decide(2).records, resource="second")
    assert indexes(decision) == ["2", "3"]


@pytest.mark.parametrize("now", [GPUS[1:], (gpu(0, fault="lost"), *GPUS[1:])], ids=["vanished", "failed"])
def test_a_repeated_call_fails_when_a_held_gpu_is_gone(now: tuple[Gpu, ...]) -> None:
    with pytest.raises(TooFewGpusError, match="1 of the 2 GPUs held by pid 100"):
        decide(2, decide(2).records, gpus=now)


def test_a_recorded_gpu_that_vanished_stays_recorded() -> None:
    decision = decide(3, (record(GPUS[0], OTHER),), gpus=GPUS[1:])
    assert {entry.uuid: entry.owner.pid for entry in decision.records}[GPUS[0].uuid] == OTHER.pid


def test_dead_owners_keep_their_gpus_without_check_dead() -> None:
    with pytest.raises(TooFewGpusError, match=r"1 held by pid 200 \(java\): 0; add --check-dead"):
        decide(4, (record(GPUS[0], OTHER),))


def test_check_dead_takes_no_more_than_needed_and_unrecorded_ones_first() -> None:
    held = (record(GPUS[0], OTHER), record(GPUS[1], OTHER))
    decision = decide(3, held, is_dead=lambda owner: True)
    assert indexes(decision) == ["0", "2", "3"]
    assert [entry.index for entry in decision.taken_over] == ["0"]
    assert len(decision.records) == len({entry.uuid for entry in decision.records}) == 4


def test_check_dead_asks_about_no_owner_while_there_are_unrecorded_gpus() -> None:
    def asked(owner: Owner) -> bool:
        raise AssertionError(f"asked about {owner}")

    assert indexes(decide(3, (record(GPUS[0], OTHER),), is_dead=asked)) == ["1", "2", "3"]


def test_a_live_owner_loses_nothing_to_check_dead() -> None:
    held = (record(GPUS[0], OTHER), record(GPUS[1], owner(300)))
    with pytest.raises(TooFewGpusError, match="2 held by pid 200"):
        decide(4, held, is_dead=lambda owner: owner.pid == 300)


def test_a_dead_owners_gpu_that_is_still_used_is_not_handed_on() -> None:
    held = (record(GPUS[0], OTHER), record(GPUS[1], OTHER))

    def used(record: Record, gpu: Gpu) -> str:
        return "pid 77, which computes on it" if gpu.index == "0" else ""

    assert indexes(decide(3, held, is_dead=lambda owner: True, still_used=used)) == ["1", "2", "3"]
    with pytest.raises(
        TooFewGpusError, match="GPU 0 is still used by pid 77, which computes on it; end what"
    ) as caught:
        decide(4, held, is_dead=lambda owner: True, still_used=used)
    assert "--take-busy" in caught.value.mend


def test_faulty_gpus_are_neither_given_nor_taken_over() -> None:
    gpus = (gpu(0, fault="x"), gpu(1, fault="x"), *GPUS[2:])
    with pytest.raises(TooFewGpusError, match="3 asked for, 4 seen, 2 healthy, 0 held"):
        decide(3, (record(GPUS[0], OTHER),), gpus=gpus, is_dead=lambda owner: True)


def test_a_reused_pid_is_another_owner() -> None:
    earlier = owner(ME.pid, start_time=ME.start_time - 1)
    assert indexes(decide(2, (record(GPUS[0], earlier),))) == ["1", "2"]


def test_deallocate_removes_one_owners_records_of_all_resources() -> None:
    records = (record(GPUS[0], ME), record(GPUS[1], ME, resource="b"), record(GPUS[2], OTHER))
    assert [entry.index for entry in allocation.without_owner(records, ME)] == ["2"]


def test_ordinals_count_all_of_the_owners_gpus_in_pci_order() -> None:
    records = (record(GPUS[3], ME), record(GPUS[1], ME, resource="b"), record(GPUS[0], OTHER), record(GPUS[2], ME))
    assert allocation.ordinals(records, ME, [GPUS[2].uuid, GPUS[3].uuid]) == ("1", "2")


def test_ordinals_follow_the_bus_and_not_the_index() -> None:
    def at(index: int, address: str) -> Gpu:
        return Gpu(uuid=f"GPU-{index}", index=str(index), pci_address=address, name="x", vendor="nvidia")

    gpus = (at(0, "10000:01:00.0"), at(1, "0000:c1:00.0"), at(2, "0000:41:00.0"))
    records = tuple([record(each, ME) for each in gpus])
    assert allocation.ordinals(records, ME, ["GPU-0"]) == ("2",)
    assert allocation.ordinals(records, ME, ["GPU-1"]) == ("1",)
    assert allocation.ordinals(records, ME, ["GPU-2"]) == ("0",)


def test_a_refusal_names_many_owners_in_few_words() -> None:
    gpus = tuple([gpu(index) for index in range(200)])
    held = tuple([record(each, owner(1000 + place)) for place, each in enumerate(gpus)])
    with pytest.raises(TooFewGpusError, match="and 192 more owners") as caught:
        decide(1, held, gpus=gpus)
    assert len(str(caught.value)) < 1000


def test_a_further_resource_keeps_the_ordinals_that_were_told() -> None:
    """Only GPUs after those that the owner holds: one before would number them anew."""
    held = (record(GPUS[1], ME), record(GPUS[2], OTHER))
    assert indexes(decide(1, held, resource="more", keep_ordinals=True)) == ["3"]
    assert indexes(decide(1, held, resource="more")) == ["0"]
    with pytest.raises(TooFewGpusError, match="GPU 0 is free, but comes before one that pid 100"):
        decide(2, held, resource="more", keep_ordinals=True)
