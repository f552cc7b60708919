"""What becomes of the file that Flink reads, and of those that the role wrote before."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, read
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_notes import Note, parse
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_plan import Folder, Plan, clearing, merging
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

PATH = "/c/config.yaml"
GPU, FPGA = Resource("gpu", 2), Resource("fpga", 1, driver_class="org.example.Fpga")
WANTED, BOTH = wanted_settings([GPU]), wanted_settings([GPU, FPGA])
OPERATORS = b"external-resources: other;gpu\nexternal-resource.gpu.amount: 8\n"


def note(name: str, path: str = PATH) -> str:
    return str(Note.of(name, BOTH, path))


def planned(content: bytes | None, notes: list[str], *, make: bool = False) -> Plan:
    present = {} if content is None else {"config.yaml": content}
    return merging(Folder("/c", present, "2.3.0"), "auto", WANTED, notes, make=make)


def names(plan: Plan) -> list[str]:
    return read(plan.content, plan.format).resources


def test_a_plan_says_what_to_write_down_before_and_what_to_forget_after() -> None:
    before = merge(b"external-resources: other\n", "config-yaml", BOTH)
    notes = ["user flink", note("fpga"), note("gpu", "/d e/config.yaml")]

    plan = planned(before, notes)

    assert (plan.path, plan.format, plan.differs, plan.fault) == (PATH, "config-yaml", True, "")
    assert (plan.made, plan.unmade, plan.left) == ([note("gpu")], [note("fpga")], [])
    assert names(plan) == ["other", "gpu"]
    again = planned(plan.content, [note("gpu")])
    assert (again.differs, again.made, again.unmade) == (False, [], [])


def test_changed_settings_of_a_name_are_written_down_anew() -> None:
    older = str(Note.of("gpu", wanted_settings([Resource("gpu", 1)]), PATH))
    plan = planned(b"", [older])
    assert (plan.made, plan.unmade) == ([note("gpu")], [older])


def test_what_the_role_wrote_is_taken_out_of_a_file_that_is_no_longer_used() -> None:
    before = b"external-resources: other\n"
    plan = clearing(PATH, merge(before, "config-yaml", BOTH), [note("gpu"), note("fpga"), note("gpu", "/d")])
    assert (plan.content, plan.differs) == (before, True)
    assert (plan.unmade, plan.left) == ([note("gpu"), note("fpga")], [])


@pytest.mark.parametrize(
    "edit",
    [(b"class: org.example.Fpga", b"class: org.example.Mine"), (b"amount: 1", b"amount: 3")],
    ids=["class", "amount"],
)
def test_what_somebody_else_has_written_under_that_name_since_is_left(edit: tuple[bytes, bytes]) -> None:
    theirs = merge(b"", "config-yaml", BOTH).replace(*edit)
    for plan in (clearing(PATH, theirs, [note("fpga")]), planned(theirs, [note("fpga")])):
        assert "fpga" in names(plan)
        assert (plan.left, plan.unmade) == (["fpga"], [note("fpga")])


def test_what_calls_our_script_is_taken_out_however_it_was_edited() -> None:
    for protocol in ("released", "flip108"):
        edited = merge(b"", "config-yaml", wanted_settings([Resource("gpu", 7)], protocol=protocol))
        assert clearing(PATH, edited, [note("gpu")]).content == b""


def test_a_note_that_was_taken_before_an_interruption_takes_nothing_of_the_operator_s() -> None:
    plan = clearing(PATH, OPERATORS, [note("gpu")])
    assert (plan.content, plan.differs, plan.left) == (OPERATORS, False, ["gpu"])


def test_a_file_or_a_name_that_is_gone_is_forgotten() -> None:
    for content in (None, b"", b"external-resources: other\n"):
        plan = clearing(PATH, content, [note("gpu")])
        assert (plan.differs, plan.fault, plan.unmade, plan.left) == (False, "", [note("gpu")], [])


def test_only_whole_notes_are_read() -> None:
    assert [each.name for each in parse([note("gpu"), f"no {note('gpu')}", "flink resource gpu in /c", "user a"])] == [
        "gpu"
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({}, "/c: neither config.yaml nor flink-conf.yaml is there"),
        ({"config.yaml": b"a: 1\na: 2\n"}, "/c/config.yaml: line 2, column 1: 'a' again"),
        ({"config.yaml": b"", "flink-conf.yaml": b""}, "/c: both config.yaml and flink-conf.yaml are there"),
    ],
)
def test_what_can_not_be_merged_is_a_fault(content: dict[str, bytes], says: str) -> None:
    plan = merging(Folder("/c", content, ""), "auto", WANTED, [])
    assert plan.fault.startswith(says)
    assert (plan.differs, plan.made) == (False, [])


def test_a_file_that_flink_reads_is_made_only_where_that_is_asked_for() -> None:
    plan = planned(None, [])
    assert plan.fault == f"{PATH} is what Flink reads, and is missing; make it, for none is made here"
    assert names(planned(None, [], make=True)) == ["gpu"]
