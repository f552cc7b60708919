"""No file lands before the validators have accepted all of them; what makes no sense is refused before that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.record import FilingError

from tests.plugins.filing import SmallHost

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")
needs_sudo = pytest.mark.skipif(not shutil.which("visudo", path="/usr/sbin:/usr/bin"), reason="sudo is not installed")
GOOD, BAD = "flink ALL=(root) NOPASSWD: /usr/bin/true\n", "flink ALL=(root NOPASSWD: /usr/bin/true\n"


@pytest.fixture
def host(tmp_path: Path) -> SmallHost:
    return SmallHost(tmp_path)


def sudoers(host: SmallHost, content: str, name: str = "flink") -> dict[str, str]:
    return host.file(f"sudoers.d/{name}", content, mode="0440", validate="visudo -cf %s")


@needs_sudo
def test_a_good_sudoers_file_lands(host: SmallHost) -> None:
    assert host.run([sudoers(host, GOOD)]).changed
    assert host.tree()["etc/sudoers.d/flink"].mode == 0o440


@needs_sudo
@pytest.mark.parametrize("check", [False, True])
def test_one_bad_file_keeps_all_from_landing_and_the_refusal_says_why(host: SmallHost, check: bool) -> None:
    before = host.tree()
    with pytest.raises(FilingError) as refusal:
        host.run([host.file("first"), sudoers(host, GOOD, "good"), sudoers(host, BAD), host.file("last")], check=check)
    assert host.tree() == before
    said = str(refusal.value)
    assert f"{host.etc}/sudoers.d/flink was refused by 'visudo -cf %s' (exit code 1: " in said
    assert "syntax error" in said
    assert "\n" not in said


@needs_sudo
def test_a_bad_file_changes_nothing_on_an_installed_host(host: SmallHost) -> None:
    host.run([host.file("first"), sudoers(host, GOOD)])
    before = host.tree()
    with pytest.raises(FilingError, match="syntax error"):
        host.run([host.file("first", "a later version"), sudoers(host, BAD)])
    assert host.tree() == before


def test_a_bad_file_is_not_even_beside_its_place_while_it_is_judged(host: SmallHost) -> None:
    host.run([host.file("sudoers.d/other")])
    listing = host.top / "listing"
    judge = f"sh -c 'ls -A {host.etc}/sudoers.d > {listing}; grep -q . \"$0\"; exit 1' %s"
    with pytest.raises(FilingError, match="exit code 1"):
        host.run([host.file("sudoers.d/other"), host.file("sudoers.d/flink", BAD, validate=judge)])
    assert listing.read_text() == "other\n"


def test_an_unchanged_file_is_not_judged_again(host: SmallHost) -> None:
    host.run([host.file("a")])
    assert not host.run([host.file("a", validate="false %s")]).changed


def test_a_missing_validator_is_passed_over_in_check_mode_only(host: SmallHost) -> None:
    files = [host.file("a", validate="no-such-program --check %s")]
    outcome = host.run(files, check=True)
    assert outcome.changed
    assert f"skip the validation of {host.etc}/a: no-such-program isn't there yet" in outcome.actions
    with pytest.raises(FilingError, match="no-such-program isn't there; install its package"):
        host.run(files)
    assert not (host.etc / "a").exists()


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        pytest.param({"path": "etc/a"}, "'etc/a' is not an absolute path", id="relative"),
        pytest.param({"path": "/etc/../a"}, "is not an absolute path in its plain form", id="with .."),
        pytest.param({"path": "/etc//a"}, "is not an absolute path in its plain form", id="double slash"),
        pytest.param({"path": "//etc/a"}, "is not an absolute path in its plain form", id="two slashes"),
        pytest.param({"path": "/"}, "is not an absolute path in its plain form", id="the root"),
        pytest.param({"link": "/b"}, "needs either content or link", id="both"),
        pytest.param({"content": None}, "needs either content or link", id="neither"),
        pytest.param({"content": None, "link": ""}, "needs either content or link", id="empty link"),
        pytest.param({"mode": "420"}, "mode of .* is '420': write four octal digits in quotes", id="mode unquoted"),
        pytest.param({"mode": "4755"}, "four octal digits", id="set-user-ID"),
        pytest.param({"mode": "u=rw"}, "four octal digits", id="symbolic mode"),
        pytest.param({"validate": "visudo -c"}, "whose place is %s", id="validator without place"),
    ],
)
def test_what_makes_no_sense_is_refused(host: SmallHost, changes: dict[str, str], reason: str) -> None:
    with pytest.raises(FilingError, match=reason):
        host.run([{**host.file("a"), **changes}])
    assert not host.record.parent.exists()


def test_a_path_is_named_once_and_is_no_folder_of_another(host: SmallHost) -> None:
    with pytest.raises(FilingError, match="a is named 2 times"):
        host.run([host.file("a"), host.file("a")])
    with pytest.raises(FilingError, match="a is to be a file, and the folder of another one"):
        host.run([host.file("a"), host.file("a/b")])


def test_the_record_s_own_files_are_no_place_for_others(host: SmallHost) -> None:
    for name in ("record.json", "record.json.lock", "before", "before/a"):
        path = str(host.record.parent / name)
        with pytest.raises(FilingError, match="belongs to the record itself"):
            host.run([{"path": path, "content": ""}])
