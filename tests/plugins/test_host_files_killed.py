"""A run that is killed at any point leaves whole files, and is mended by the next one, whichever that is."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.plugins.filing import Node, SmallHost, run_until_killed

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to root")
_MOST_ACTS = 400
THEIRS = "theirs\n"


def _start(folder: Path) -> SmallHost:
    """A host where the operator had a file and a link of his own."""
    folder.mkdir(mode=0o755)
    host = SmallHost(folder)
    theirs = host.etc / "settings.conf"
    theirs.write_text(THEIRS)
    os.chown(theirs, 3, 4)
    theirs.chmod(0o604)
    (host.etc / "command").symlink_to("/theirs")
    return host


def _first(host: SmallHost) -> list[dict[str, str]]:
    return [host.file("settings.conf", "one"), host.file("new/deep/unit.conf"), host.link("command", "/one")]


def _second(host: SmallHost) -> list[dict[str, str]]:
    """Of the first ones a link is gone, a file is another, and one in a new folder was added."""
    return [host.file("settings.conf", "two"), host.file("other/unit.conf", mode="0600")]


SCENARIOS: dict[str, tuple[Callable[[SmallHost], object], Callable[[SmallHost], list[dict[str, str]]]]] = {
    "installing": (lambda host: None, _first),
    "changing": (lambda host: host.run(_first(host)), _second),
    "removing": (lambda host: host.run(_first(host)), lambda host: []),
    "removing what was edited": (
        lambda host: (host.run(_first(host)), (host.etc / "settings.conf").write_text("edited")),
        lambda host: [],
    ),
}


def _killed_at_each_act(tmp_path: Path, scenario: str) -> Iterator[tuple[SmallHost, dict[str, Node]]]:
    """Hosts on which a run was killed before its first act, its second one, and so on; with their trees at first."""
    prepare, files = SCENARIOS[scenario]
    for nth in range(1, _MOST_ACTS):
        host = _start(tmp_path / str(nth))
        initial = host.tree()
        prepare(host)
        if not run_until_killed(partial(host.run, files(host)), nth):
            assert nth > 10
            return
        _check_all_is_whole(host)
        yield host, initial
    pytest.fail(f"it was still at work after {_MOST_ACTS} acts")


def _check_all_is_whole(host: SmallHost) -> None:
    """No path holds a piece of a file, and the operator's is at its place or saved."""
    settings = host.etc / "settings.conf"
    whole = {THEIRS, "edited", *(files(host)[0]["content"] for files in (_first, _second))}
    assert settings.read_text() in whole
    saved = host.record.parent / "before" / str(settings).replace("/", "%2F")
    assert THEIRS in (settings.read_text(), saved.read_text() if saved.exists() else "")
    assert str((host.etc / "command").readlink() if (host.etc / "command").is_symlink() else "/one") in (
        "/one",
        "/theirs",
    )


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_an_installation_mends_it(tmp_path: Path, scenario: str) -> None:
    for host, initial in _killed_at_each_act(tmp_path, scenario):
        for files in (_second(host), []):
            foretold = host.run(files, check=True)
            assert host.run(files) == foretold
            assert not host.run(files).changed
        _check_as_before(host, initial)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_removal_mends_it(tmp_path: Path, scenario: str) -> None:
    for host, initial in _killed_at_each_act(tmp_path, scenario):
        foretold = host.run(check=True)
        assert host.run() == foretold
        assert not host.run().changed
        _check_as_before(host, initial)


def _check_as_before(host: SmallHost, initial: dict[str, Node]) -> None:
    now = host.tree()
    kept = now.pop("etc/settings.conf.flink-gpu-removed", None)
    assert kept is None or kept.content == "edited"
    assert now == initial
