"""What an attacker puts where the root program's code and state stand."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.installation import CURRENT, SCRIPT, sudo_rules
from tests.isolation.lab import FLINK, SETTINGS, Lab
from tests.isolation.privileged_calls import (
    ASK,
    HOME,
    LEDGER,
    ONE_VIEW,
    STATE,
    held,
    home,
    opens,
    refused,
)

one_view = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

RUN = "/run/flink-gpu-discovery"
TENANT = 7003

_DEPTH = 1100


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def hand_over(path: Path) -> None:
    os.chown(path, FLINK, FLINK, follow_symlinks=False)


@one_view
@pytest.mark.parametrize(
    ("part", "how"),
    [
        ("", "owner"),
        ("", "group"),
        ("", "world"),
        ("bin", "owner"),
        ("bin/flink-gpu-discovery-root", "group"),
        ("flink_gpu_discovery", "world"),
        ("flink_gpu_discovery/isolation", "group"),
        ("flink_gpu_discovery/isolation/__pycache__", "world"),
        ("flink_gpu_discovery/privileged.py", "owner"),
        ("flink_gpu_discovery/isolation/v2.py", "world"),
        ("pynvml.py", "owner"),
    ],
)
def test_code_that_others_may_change_is_refused(host: Lab, executor: Agent, part: str, how: str) -> None:
    path = host.path(f"{CURRENT}/{part}".rstrip("/"))
    if how == "owner":
        hand_over(path)
    else:
        path.chmod(path.stat().st_mode | (0o020 if how == "group" else 0o002))
    refused(host, executor, executor.call(*ASK), 77, CURRENT)


@one_view
def test_code_in_a_folder_that_others_may_change_is_refused(host: Lab, executor: Agent) -> None:
    hand_over(host.path("/opt"))
    refused(host, executor, executor.call(*ASK), 77, "/opt ")


@one_view
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777])
@pytest.mark.parametrize("folder", [RUN, STATE])
def test_a_state_folder_that_others_may_write_is_refused(host: Lab, executor: Agent, folder: str, mode: int) -> None:
    host.path(STATE).mkdir(parents=True)
    host.path(folder).chmod(mode)
    refused(host, executor, executor.call(*ASK), 77, folder)


@one_view
@pytest.mark.parametrize("folder", [RUN, STATE])
def test_a_state_folder_of_somebody_else_is_refused(host: Lab, executor: Agent, folder: str) -> None:
    host.path(STATE).mkdir(parents=True)
    hand_over(host.path(folder))
    refused(host, executor, executor.call(*ASK), 77, folder)


@one_view
@pytest.mark.parametrize("target", ["/etc", "/opt/safe", HOME, "/nowhere"])
def test_a_link_where_the_state_folder_stands_is_refused(host: Lab, executor: Agent, target: str) -> None:
    """The folder above is the executors' own, as it is where GPUs are only coordinated."""
    home(host)
    host.path("/opt/safe").mkdir()
    host.path(RUN).mkdir()
    host.path(STATE).symlink_to(target)
    for path in (host.path(RUN), host.path(STATE)):
        hand_over(path)
    before = names(host.path("/etc"))
    refused(host, executor, executor.call(*ASK), 77)
    assert names(host.path("/etc")) == before
    assert names(host.path("/opt/safe")) == names(host.path(HOME)) == []


@one_view
def test_a_ledger_behind_somebody_else_s_link_is_refused(host: Lab, executor: Agent) -> None:
    (host.path("/opt/safe/state")).mkdir(parents=True)
    (home(host) / "way").symlink_to("/opt/safe")
    hand_over(home(host) / "way")
    host.settings(f"[flink-gpu-discovery]\nledger = {HOME}/way/state/ledger\n")
    refused(host, executor, executor.call(*ASK), 77)
    assert names(host.path("/opt/safe/state")) == []


@one_view
@pytest.mark.parametrize("name", ["ledger", "ledger.lock", "ledger.new"])
def test_a_link_where_a_state_file_stands_is_not_followed(host: Lab, executor: Agent, name: str) -> None:
    victim = home(host) / "victim"
    victim.write_text("mine\n", encoding="ascii")
    host.path(STATE).mkdir(parents=True)
    link = host.path(f"{STATE}/{name}")
    link.symlink_to(f"{HOME}/victim")
    done = executor.call(*ASK)
    if name == "ledger.new":  # what an interrupted call left is removed
        assert (done.code, held(host)) == (0, {executor.pid: "0,1"})
    else:
        assert (done.code, done.out, opens(executor)) == (77, "", "0123")
    assert victim.read_text(encoding="ascii") == "mine\n"


@one_view
@pytest.mark.parametrize("name", ["ledger", "ledger.lock", "ledger.new"])
def test_a_second_name_of_a_state_file_is_not_written_through(host: Lab, executor: Agent, name: str) -> None:
    host.path(STATE).mkdir(parents=True)
    twin = host.path("/run/twin")
    twin.write_text("", encoding="ascii")
    host.path(f"{STATE}/{name}").hardlink_to(twin)
    executor.call(*ASK)
    if name != "ledger.lock":
        assert twin.read_text(encoding="ascii") == ""


@one_view
def test_the_user_can_neither_write_nor_lock_nor_link_the_state(host: Lab, executor: Agent) -> None:
    executor.call(*ASK)
    home(host)
    assert executor.try_open(LEDGER, os.O_RDONLY) == "opened"
    assert executor.try_open(LEDGER, os.O_RDWR) == "EACCES"
    assert executor.try_open(f"{LEDGER}.lock", os.O_RDONLY) == "EACCES"
    assert executor.try_open(f"{LEDGER}.new", os.O_WRONLY | os.O_CREAT) == "EACCES"
    for act in (f"os.rename('{STATE}', '{RUN}/x')", f"os.unlink('{LEDGER}')", f"os.mkdir('{STATE}/x')"):
        told = executor.evaluate(f"try: result = {act}\nexcept OSError as error: result = error.strerror")
        assert told == "Permission denied"


@one_view
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"0 4711\n", b"#flink-gpu-ledger 99\tuuid\n#end 0\n", b"x" * 5_000_000]
)
def test_a_damaged_ledger_is_kept_and_nobody_confined(host: Lab, executor: Agent, content: bytes) -> None:
    host.path(STATE).mkdir(parents=True)
    host.path(f"{LEDGER}.lock").write_text("flink-gpu-ledger\n", encoding="ascii")
    host.path(LEDGER).write_bytes(content)
    done = executor.call(*ASK)
    assert (done.code, done.out, opens(executor)) == (65, "", "0123")
    assert host.path(LEDGER).read_bytes() == content


def start_time(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()[19]


def test_an_empty_cgroup_under_the_expected_name_does_no_harm(host: Lab, executor: Agent) -> None:
    assert executor.cgroup is not None
    executor.cgroup.child(f"flink-gpu-{executor.pid}-{start_time(executor.pid)}")
    assert executor.call(*ASK).out == "0,1\n"
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


def add_user(host: Lab, name: str, uid: int) -> None:
    """One more user that may call: whoever has a cgroup of its own anywhere is refused by calls everywhere."""
    for file, line in (("passwd", f"{name}:x:{uid}:{uid}::/:/bin/sh\n"), ("group", f"{name}:x:{uid}:\n")):
        path = host.path(f"/etc/{file}")
        path.write_text(path.read_text(encoding="utf-8") + line, encoding="utf-8")
    with host.path("/etc/shadow").open("a", encoding="utf-8") as stream:
        stream.write(f"{name}:*:19000:0:99999:7:::\n")
    host.sudoers(sudo_rules((name,)), name="one-more")


@pytest.mark.parametrize("view", WITH_V2, indirect=True)
def test_a_cgroup_that_the_user_made_under_the_expected_name_is_refused(host: Lab) -> None:
    add_user(host, "tenant", TENANT)
    executor = host.executor(TENANT)
    assert executor.cgroup is not None
    executor.cgroup.chown(TENANT)
    executor.evaluate(
        f"os.mkdir('{executor.cgroup.inside_v2}/flink-gpu-{executor.pid}-{start_time(executor.pid)}')\nresult = 0"
    )
    before = executor.membership()
    done = executor.call(*ASK)
    assert (done.code, done.out, held(host)) == (71, "", {})
    assert (executor.membership(), opens(executor)) == (before, "0123")


@pytest.mark.slow
@pytest.mark.parametrize("view", WITH_V2[:1], indirect=True)
def test_cgroups_within_cgroups_keep_nobody_from_reclaiming(host: Lab, executor: Agent) -> None:
    """Under a name of ours, of an owner that has ended, and deeper than a stack."""
    unit = host.cgroup("unit")
    unit.chown(TENANT)
    host.executor(TENANT).evaluate(
        f"os.chdir({unit.inside_v2!r})\n"
        f"for name in ['flink-gpu-2-2', *'a' * {_DEPTH}]: os.mkdir(name); os.chdir(name)\n"
        "os.chdir('/')"
    )
    try:
        done = executor.call(SCRIPT, "reclaim", "--isolate")
    finally:
        for depth in range(_DEPTH, -1, -1):
            Path(f"{unit.v2}/flink-gpu-2-2{'/a' * depth}").rmdir()
    assert (done.code, done.err) == (0, ""), done


@one_view
def test_settings_made_by_the_user_in_the_cgroup_s_or_run_folder_are_not_looked_at(host: Lab, executor: Agent) -> None:
    for folder in (home(host), host.path("/dev/shm")):
        (folder / Path(SETTINGS).name).write_text("[flink-gpu-discovery]\nbackend = simulated:9\n", encoding="ascii")
    executor.evaluate(f"os.chdir({HOME!r})")
    assert executor.call(*ASK, env={"HOME": HOME, "XDG_CONFIG_HOME": HOME, "TMPDIR": HOME}).out == "0,1\n"
    executor.evaluate("os.chdir('/')")
    assert opens(executor) == "01"
    assert names(host.path(HOME)) == [Path(SETTINGS).name]
