"""An archive gives files only under the names, and with the content, that the MANIFEST gives them."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.release_manifest import (
    ReleaseError,
    entry,
    name_for,
    render,
)
from ansible_collections.flinkops.gpu.plugins.module_utils.release_plan import Wish

from tests.plugins.releasing import PYTHON, SCRIPT, Host, small

MADE = small("1.0")


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def _member(
    name: str, content: bytes = b"", *, kind: bytes = tarfile.REGTYPE, target: str = ""
) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname, member.mode = len(content), kind, target, 0o4777
    member.uid = member.gid = 1234
    return member, content


def _archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _install(host: Host, content: bytes) -> None:
    archive = host.folder / "sent.tar"
    archive.write_bytes(content)
    host.run(Wish("present", MADE.name, MADE.manifest, str(archive), python=PYTHON))


def test_members_that_the_manifest_does_not_name_are_not_unpacked(host: Host) -> None:
    outside = str(host.folder / "outside")
    odd = [
        _member("../../outside", b"x"),
        _member(outside, b"x"),
        _member("bin", kind=tarfile.SYMTYPE, target=str(host.folder)),
        _member("more.py", b"x"),
        _member("MANIFEST", b"x"),
        _member("BYTECODE", b"x"),
    ]
    _install(host, _archive(*odd, *(_member(path, content) for path, content in MADE.contents.items()), *odd))
    assert host.answer() == "1.0\n"
    assert sorted(path.name for path in host.folder.iterdir()) == ["opt", "sent.tar"]
    assert host.install(MADE)["changed"] is False


@pytest.mark.parametrize(
    "wrong",
    [
        _member("pynvml.py", b"other"),
        _member("pynvml.py", kind=tarfile.SYMTYPE, target="/etc/passwd"),
        _member("pynvml.py", kind=tarfile.LNKTYPE, target=SCRIPT),
        _member("pynvml.py", kind=tarfile.CHRTYPE),
        _member("./pynvml.py", MADE.contents["pynvml.py"]),
    ],
)
def test_a_file_with_other_content_counts_as_lacking(host: Host, wrong: tuple[tarfile.TarInfo, bytes]) -> None:
    others = [_member(path, content) for path, content in MADE.contents.items() if path != "pynvml.py"]
    with pytest.raises(ReleaseError, match=r"lacks pynvml[.]py: ship the release again"):
        _install(host, _archive(*others, wrong))
    assert not host.current.is_symlink()
    assert host.names() == set()


@pytest.mark.parametrize("content", [b"", b"no archive", gzip.compress(MADE.archive()), MADE.archive()[:700]])
def test_what_is_no_whole_archive_is_refused(host: Host, content: bytes) -> None:
    with pytest.raises(ReleaseError, match="ship the release again"):
        _install(host, content)
    assert host.names() == set()


def test_a_missing_archive_is_refused(host: Host) -> None:
    with pytest.raises(ReleaseError, match="can't be read"):
        host.run(Wish("present", MADE.name, MADE.manifest, str(host.folder / "none"), python=PYTHON))


def test_a_script_that_can_not_be_started_is_refused(host: Host) -> None:
    contents = {**MADE.contents, SCRIPT: b"#!/bin/sh\n"}
    manifest = render([entry(path, content) for path, content in contents.items()])
    archive = host.folder / "sent.tar"
    archive.write_bytes(_archive(*(_member(path, content) for path, content in contents.items())))
    with pytest.raises(ReleaseError, match=r"starts with b'#!/bin/sh\\n'"):
        host.run(Wish("present", name_for("1.0", manifest), manifest, str(archive), python=PYTHON))
    assert host.names() == set()


def test_a_manifest_that_leads_outside_is_refused(host: Host) -> None:
    manifest = f"{'0' * 64}  0644  ../../x\n"
    with pytest.raises(ReleaseError, match="MANIFEST: "):
        host.run(Wish("present", name_for("1.0", manifest), manifest, python=PYTHON))
