"""The ledger's text: what goes in comes out, and nothing else gets in."""

from __future__ import annotations

import os

import pytest

from flink_gpu_discovery.errors import LedgerDamagedError
from flink_gpu_discovery.ledger import fileformat, upstream
from flink_gpu_discovery.models import Record
from tests.support.samples import gpu, owner, record

RECORDS = (
    record(gpu(0), owner(100)),
    record(gpu(10), owner(200, command=os.fsdecode(b"\xff\t\n)")), state="pending", cgroup="/sys/fs/cgroup/a b"),
    record(gpu(2), owner(100), resource="second"),
)
TEXT = fileformat.render(RECORDS)


def values(entry: Record) -> tuple[object, ...]:
    whole = [getattr(entry, name) for name in Record.__slots__ if name != "owner"]
    return (*whole, *[getattr(entry.owner, name) for name in type(entry.owner).__slots__])


def test_the_records_come_back_whole_and_ascending_by_index() -> None:
    expected = [values(RECORDS[place]) for place in (0, 2, 1)]
    assert [values(entry) for entry in fileformat.parse(TEXT)] == expected


def test_the_text_is_what_the_documentation_shows() -> None:
    lines = fileformat.render((record(gpu(3), owner(4711)),)).decode().split("\n")
    assert lines[0].startswith("#flink-gpu-ledger 1\tuuid\tindex\tpci_address\tresource\tpid\t")
    assert lines[1].split("\t")[:5] == ["GPU-00000003", "3", "0000:13:00.0", "gpu", "4711"]
    assert lines[2:] == ["#end 1", ""]


def test_an_empty_ledger_is_a_ledger() -> None:
    assert fileformat.parse(fileformat.render(())) == ()


@pytest.mark.parametrize("size", range(len(TEXT)))
def test_a_ledger_cut_off_at_any_byte_is_refused(size: int) -> None:
    with pytest.raises(LedgerDamagedError):
        fileformat.parse(TEXT[:size])


@pytest.mark.parametrize("line", range(1, len(RECORDS) + 1))
def test_a_ledger_that_lacks_a_line_is_refused(line: int) -> None:
    lines = TEXT.split(b"\n")
    with pytest.raises(LedgerDamagedError, match="closing line"):
        fileformat.parse(b"\n".join(lines[:line] + lines[line + 1 :]))


def test_a_gpu_recorded_twice_is_refused() -> None:
    twice = fileformat.render((RECORDS[0], record(gpu(0), owner(300))))
    with pytest.raises(LedgerDamagedError, match="line 3: GPU GPU-00000000 is recorded twice"):
        fileformat.parse(twice)


def test_another_format_version_is_named() -> None:
    with pytest.raises(LedgerDamagedError, match="format version 2, this program knows 1"):
        fileformat.parse(TEXT.replace(b"ledger 1\t", b"ledger 2\t", 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"\t100\t", b"\t-100\t"),
        (b"\t100\t", b"\t\t"),
        (b"\t100\t", b"\t1e2\t"),
        (b"\t100\t", b"\t" + b"9" * 40 + b"\t"),
        (b"\theld\t", b"\tgone\t"),
        (b"\t100\t", b"\t0100\t"),
        (b"\t100\t", b"\t99999999999\t"),
        (b"\t4026531836\t", b"\t04026531836\t"),
        (b"\t4026531836\t", b"\t99999999999999999999\t"),
        (b"\tjava\t", b"\tj%61va\t"),
        (b"\t0\t", b"\tzero\t"),
        (b"\t0\t", b"\t00\t"),
        (b"\t0\t", b"\t0:\t"),
        (b"\tgpu\t", b"\tgpu\tx\t"),
        (b"GPU-00000000", b"-"),
        (b"GPU-00000000", b"GPU-%0"),
        (b"GPU-00000000", b"GPU-\xc3\xbc"),
    ],
)
def test_a_line_with_a_wrong_field_is_refused(old: bytes, new: bytes) -> None:
    with pytest.raises(LedgerDamagedError):
        fileformat.parse(TEXT.replace(old, new, 1))


@pytest.mark.parametrize("content", [b"", b"\n", b"{}", b'{"a": 1}\n', b"\x00" * 100, bytes(range(256)), b"#end 0\n"])
def test_what_is_no_ledger_is_refused(content: bytes) -> None:
    with pytest.raises(LedgerDamagedError):
        fileformat.parse(content)


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        (b"", ()),
        (b"\n", ()),
        (b"0 4711\n", (("0", 4711),)),
        (b"0 4711\n11 4712\n", (("0", 4711), ("11", 4712))),
        (b"0 4711", (("0", 4711),)),
        (b"0 4711 x\n", None),
        (b"zero 4711\n", None),
        (b"0 -1\n", None),
        (b"0 " + b"9" * 30, None),
        (TEXT, None),
    ],
)
def test_upstreams_coordination_file_is_recognised(content: bytes, entries: object) -> None:
    assert upstream.recognise(content) == entries
