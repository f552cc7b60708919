"""The v1 controller's lists: what is left of a parent's list once rules hold in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flink_gpu_discovery.isolation import device_list
from flink_gpu_discovery.isolation.device_list import Entries
from flink_gpu_discovery.isolation.rules import DeviceNode, Rules


def rules(classes: set[int], allowed: list[tuple[int, int]], denied: list[tuple[int, int]]) -> Rules:
    return Rules(
        classes=frozenset(classes),
        allowed=tuple([DeviceNode(f"/dev/a{number}", *number) for number in sorted(allowed)]),
        denied=tuple([DeviceNode(f"/dev/d{number}", *number) for number in sorted(denied)]),
    )


ONE = rules({195}, [(195, 0), (195, 255)], [(195, 1), (195, 2)])


def narrowed(text: str, by: Rules = ONE) -> Entries:
    return device_list.narrowed(device_list.parse(text), by)


def passes(entries: Entries, major: int, minor: int, access: str = "rw") -> bool:
    """As ``match_exception`` in ``security/device_cgroup.c``: one entry must cover all of the access."""
    return any(
        [
            kind == "c" and a in ("*", str(major)) and b in ("*", str(minor)) and set(access) <= set(allowed)
            for (kind, a, b), allowed in entries.items()
        ]
    )


def test_exact_entries_of_other_gpus_go() -> None:
    assert narrowed("c 1:3 rwm\nc 195:0 rw\nc 195:1 rw\n") == {("c", "1", "3"): "rwm", ("c", "195", "0"): "rw"}


def test_a_wildcard_for_the_major_becomes_what_is_allowed_of_it() -> None:
    assert narrowed("c 195:* rwm\n") == {("c", "195", "0"): "rwm", ("c", "195", "255"): "rwm"}


def test_a_wildcard_for_everything_is_split_by_majors() -> None:
    left = narrowed("c *:* rwm\n")
    assert len(left) == 511 + 2
    assert passes(left, 1, 3)
    assert passes(left, 511, 77)
    assert passes(left, 195, 0)
    assert not passes(left, 195, 1)
    assert not passes(left, 195, 200)


def test_what_a_parent_does_not_let_pass_is_not_added() -> None:
    assert narrowed("c 1:3 rwm\n") == {("c", "1", "3"): "rwm"}
    assert narrowed("c 195:0 r\n") == {("c", "195", "0"): "r"}


def test_block_devices_and_bare_mknod_stay() -> None:
    assert narrowed("b *:* rwm\nc *:* m\nc 195:* m\n") == device_list.parse("b *:* rwm\nc *:* m\nc 195:* m\n")


def test_a_minor_of_any_major_is_split_too() -> None:
    left = narrowed("c *:0 rw\n")
    assert passes(left, 4, 0)
    assert passes(left, 195, 0)
    assert not passes(narrowed("c *:1 rw\n"), 195, 1)


def test_entries_of_the_same_numbers_are_one() -> None:
    assert device_list.parse("c 1:3 r\nc 1:3 w\n") == {("c", "1", "3"): "rw"}


def test_only_the_difference_is_written() -> None:
    present = device_list.parse("c 1:3 rwm\nc 195:* rwm\nc 5:0 rw\n")
    wanted = device_list.parse("c 1:3 rwm\nc 195:0 rwm\nc 5:0 rwm\n")
    assert device_list.changes(present, wanted) == (["c 195:* rwm"], ["c 195:0 rwm", "c 5:0 m"])
    assert device_list.changes(wanted, wanted) == ([], [])


def test_exceptions_name_every_number_both_ways() -> None:
    assert device_list.exceptions(ONE) == (["c 195:1 rwm", "c 195:2 rwm"], ["c 195:0 rwm", "c 195:255 rwm"])


def test_everything_allowed_is_told_from_a_list() -> None:
    assert device_list.allows_everything("a *:* rwm\n")
    assert not device_list.allows_everything("c *:* rwm\n")
    assert not device_list.allows_everything("")


@pytest.mark.parametrize("text", ["a *:* rwm\n", "c 1 rwm\n", "c 1:3\n", "c 1:3 x\n", "x 1:3 rwm\n"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"entry of a device list|unpack"):
        device_list.parse(text)


numbers = st.tuples(st.sampled_from([1, 195, 226]), st.integers(0, 4))
entry = st.tuples(
    st.just("c"),
    st.sampled_from(["*", "1", "195", "226"]),
    st.sampled_from(["*", "0", "1", "2", "3", "4"]),
)


@given(
    entries=st.dictionaries(entry, st.sampled_from(["r", "rw", "rwm", "m"]), max_size=5),
    classes=st.sets(st.sampled_from([195, 226])),
    allowed=st.sets(numbers, max_size=4),
    denied=st.sets(numbers, max_size=4),
    asked=numbers,
)
def test_what_passes_passed_before_and_is_not_denied(
    entries: Entries,
    classes: set[int],
    allowed: set[tuple[int, int]],
    denied: set[tuple[int, int]],
    asked: tuple[int, int],
) -> None:
    these = rules(classes, [*allowed], [*denied - allowed])
    left = device_list.narrowed(entries, these)
    assert device_list.narrowed(left, these) == left
    for access in ("r", "w"):
        if passes(left, *asked, access):
            assert passes(entries, *asked, access)
            assert these.allows(*asked)
        elif asked in these.allowed or asked[0] not in {*classes, *[number[0] for number in denied]}:
            assert not passes(entries, *asked, access)
