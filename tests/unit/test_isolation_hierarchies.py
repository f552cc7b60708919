"""Mounted hierarchies and a process's place in them, read from trees of files."""

from __future__ import annotations

from pathlib import Path

import pytest

from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.host import Host
from flink_gpu_discovery.isolation import hierarchies
from flink_gpu_discovery.isolation.hierarchies import Hierarchy


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "proc" / "self").mkdir(parents=True)
    return tmp_path / "proc"


def mounted(proc: Path, *lines: str) -> dict[tuple[str, ...], Hierarchy]:
    """The lines name folders relative to the temporary one, which are made as cgroups."""
    text = "22 1 0:21 / /proc rw,relatime - proc proc rw\n"
    for number, line in enumerate(lines):
        text += f"{30 + number} 22 0:{number} {line}\n".replace("TOP", str(proc.parent))
        folder = Path(text.splitlines()[-1].split(" ")[4].replace("\\040", " "))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").touch()
    (proc / "self" / "mountinfo").write_text(text)
    return {one.controllers: one for one in hierarchies.mounted(Host(proc=str(proc)))}


V1_DEVICES = "/ TOP/cg/devices rw,nosuid - cgroup cgroup rw,devices"
V2 = "/ TOP/cg/unified rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"


def test_a_hybrid_host(proc: Path) -> None:
    found = mounted(proc, V1_DEVICES, "/ TOP/cg/cpu rw - cgroup cgroup rw,cpu,cpuacct", V2)
    assert sorted(found) == [(), ("cpu", "cpuacct"), ("devices",)]
    assert found[()].is_v2
    assert found[("devices",)].folder("/a/b") == f"{proc.parent}/cg/devices/a/b"
    assert found[()].folder("/") == f"{proc.parent}/cg/unified"


def test_a_named_hierarchy_without_a_controller(proc: Path) -> None:
    options = "rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd"
    assert list(mounted(proc, f"/ TOP/cg/systemd rw - cgroup cgroup {options}")) == [("name=systemd",)]


def test_a_container_sees_its_own_part(proc: Path) -> None:
    found = mounted(proc, "/docker/x TOP/cg rw - cgroup2 cgroup rw")[()]
    assert found.folder("/docker/x") == f"{proc.parent}/cg"
    assert found.folder("/docker/x/y") == f"{proc.parent}/cg/y"


@pytest.mark.parametrize("cgroup", ["/docker/xy", "/other", "/../sibling", "/docker/x/y (deleted)", "docker/x"])
def test_a_cgroup_that_is_not_visible_is_refused(proc: Path, cgroup: str) -> None:
    found = mounted(proc, "/docker/x TOP/cg rw - cgroup2 cgroup rw")[()]
    with pytest.raises(SystemRefusedError, match="not visible below"):
        found.folder(cgroup)


def test_of_two_mounts_the_writable_and_wider_one_counts(proc: Path) -> None:
    twice = ("/ TOP/ro ro - cgroup2 cgroup rw", "/x TOP/narrow rw - cgroup2 cgroup rw", "/ TOP/wide rw - cgroup2 c rw")
    assert mounted(proc, *twice)[()].mount_point == f"{proc.parent}/wide"


def test_blanks_in_a_mount_point(proc: Path) -> None:
    assert mounted(proc, "/ TOP/my\\040cg rw - cgroup2 cgroup rw")[()].mount_point == f"{proc.parent}/my cg"


def test_where_a_process_is(proc: Path) -> None:
    hybrid = mounted(proc, V1_DEVICES, V2)
    (proc / "7").mkdir()
    (proc / "7" / "cgroup").write_text("5:devices:/unit\n4:cpu,cpuacct:/\n1:name=systemd:/s\n0::/user:slice\n")
    host = Host(proc=str(proc))
    assert hierarchies.folder_of(host, hybrid[("devices",)], 7).endswith("/cg/devices/unit")
    assert hierarchies.folder_of(host, hybrid[()], 7).endswith("/cg/unified/user:slice")
    assert hierarchies.membership(host, 7)[("cpu", "cpuacct")] == "/"


def test_a_process_that_has_gone_has_no_place(proc: Path) -> None:
    with pytest.raises(SystemRefusedError, match="cgroup of pid 8 can't be told"):
        hierarchies.folder_of(Host(proc=str(proc)), mounted(proc, V2)[()], 8)


def test_the_tree_lists_every_cgroup_once_the_top_first(tmp_path: Path) -> None:
    for name in ("a/b/c", "a/d", "e"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "cgroup.procs").touch()
    top = str(tmp_path)
    assert hierarchies.tree(top)[0] == top
    assert sorted(hierarchies.tree(top)) == sorted(
        [top, *[f"{top}/{name}" for name in ("a", "a/b", "a/b/c", "a/d", "e")]]
    )
