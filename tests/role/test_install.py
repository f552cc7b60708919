"""What an installation puts on a host, that it works there, and that nothing is done twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.booted.host import BootedHost
from tests.booted.installation import HOME
from tests.booted.taskmanager import TaskManagers, check_in_force, records
from tests.isolation.installation import CURRENT, ROOT_SCRIPT, SCRIPT
from tests.role.fleet import GROUP, ISOLATED, VARIABLES, differences, prepare_gpus, snapshot
from tests.role.hosts import EVERY_KIND
from tests.role.outcome import Outcome
from tests.role.playing import HERE, ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

SITE = "flinkops.gpu.site"
RUN = "/run/flink-gpu-discovery"
UNITS = ["flink-taskmanager@.service"]
DROP_IN = f"/etc/systemd/system/{UNITS[0]}.d"
MORE = {
    **ISOLATED,
    "flink_gpu_extra_users": ["other"],
    "flink_gpu_extra_resources": [{"name": "gpu-b", "amount": 1}],
    "flink_gpu_max_gpus_per_uid": 3,
    "flink_gpu_wait": 1.5,
    "flink_gpu_taskmanager_units": UNITS,
}
COORDINATED = {**VARIABLES, "flink_gpu_taskmanager_units": UNITS}
MOST_TASKS = 30
RELEASE = f"{HOME}/releases/"

COMMON_PATHS = {
    HOME: "drwxr-xr-x 0:0",
    f"{HOME}/releases": "drwxr-xr-x 0:0",
    f"{HOME}/record.json": "-rw------- 0:0",
    f"{HOME}/record.json.lock": "-rw------- 0:0",
    SCRIPT: f"lrwxrwxrwx 0:0 -> {CURRENT}/bin/flink-gpu-discovery",
    "/etc/flink-gpu-discovery.conf": "-rw-r--r-- 0:0",
    "/etc/tmpfiles.d/flink-gpu-discovery.conf": "-rw-r--r-- 0:0",
    DROP_IN: "drwxr-xr-x 0:0",
    f"{DROP_IN}/50-flink-gpu.conf": "-rw-r--r-- 0:0",
}
ISOLATION_PATHS = {
    RUN: "drwxr-xr-x 0:0",
    "/usr/local/libexec": "drwxr-xr-x 0:0",
    ROOT_SCRIPT: f"lrwxrwxrwx 0:0 -> {CURRENT}/bin/flink-gpu-discovery-root",
    "/etc/sudoers.d/flink-gpu-discovery": "-r--r----- 0:0",
    "/etc/dbus-1/system.d/flink-gpu-discovery.conf": "-rw-r--r-- 0:0",
}
ACCOUNTS = [f"/etc/{name}" for name in ("passwd", "shadow", "group", "gshadow")]
RELEASE_MODES = {"-rw-r--r-- 0:0", "-rwxr-xr-x 0:0", "drwxr-xr-x 0:0"}


class Installation(NamedTuple):
    """Two runs on a host, and what was there before, between and after."""

    first: Outcome
    second: Outcome
    states: tuple[dict[str, str], dict[str, str], dict[str, str]]

    def added(self) -> dict[str, str]:
        """What the first run put there or changed, but for users, with mode, owner, and a link's target."""
        found = differences(self.states[0], self.states[1])
        return {path: _about(str(after)) for path, (_, after) in found.items() if path not in ACCOUNTS}


def install(control: ControlNode, host: BootedHost, variables: dict[str, object]) -> Installation:
    prepare_gpus(host)
    states = [snapshot(host)]
    outcomes = []
    for _ in range(2):
        outcomes.append(control.play(SITE, [host], variables=variables, group=GROUP).must_succeed())
        states.append(snapshot(host))
    return Installation(outcomes[0], outcomes[1], (states[0], states[1], states[2]))


def _about(status: str) -> str:
    """Without a content's hash."""
    return status if "->" in status else " ".join(status.split()[:2])


def check_golden(host: BootedHost, name: str) -> None:
    """Each file in that folder stands on the host, with that content."""
    folder = HERE / "golden" / name
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files
    for file in files:
        assert host.succeed("cat", f"/{file.relative_to(folder)}") == file.read_text(encoding="utf-8"), file


def hold(host: BootedHost, unit: str) -> str:
    """Start a process that stands for a TaskManager and asks for two GPUs; the answer."""
    answer = f"/run/{unit}.answer"
    script = f"{SCRIPT} 2 >{answer}; exec sleep infinity"
    host.succeed("install", "-o", "flink", "/dev/null", answer)
    host.succeed("systemd-run", "--quiet", "--collect", "--uid=flink", f"--unit={unit}", "sh", "-c", script)
    return host.succeed(
        "sh", "-c", f"timeout 10 sh -c 'until [ -s {answer} ]; do sleep 0.05; done' && cat {answer}"
    ).strip()


def held_message(host: BootedHost, unit: str) -> str:
    pid = host.succeed("systemctl", "show", "-P", "MainPID", unit).strip()
    return f"pid {pid} holds GPUs in the other mode; stop all TaskManagers before flink_gpu_isolation changes"


@pytest.fixture(scope="class")
def isolated(control: ControlNode, host: BootedHost) -> Installation:
    """With isolation, on a fresh host."""
    return install(control, host, MORE)


@pytest.fixture(scope="class")
def coordinated(control: ControlNode, host: BootedHost) -> Installation:
    """With coordination alone, on a fresh host."""
    return install(control, host, COORDINATED)


@pytest.fixture
def managers(host: BootedHost, isolated: Installation) -> Iterator[TaskManagers]:
    """What starts TaskManagers; none is left running."""
    assert isolated.second.rc == 0
    started = TaskManagers(host)
    yield started
    started.stop_all()
    started.close()


@pytest.mark.parametrize("host", EVERY_KIND, indirect=True, ids=str)
class TestWithIsolation:
    """On every kind of host, with all that can stand in the files."""

    def test_a_second_run_changes_nothing_in_few_tasks(self, isolated: Installation) -> None:
        assert isolated.second.changed == []
        assert differences(*isolated.states[1:]) == {}
        assert isolated.second.tasks <= MOST_TASKS
        assert "[WARNING]" not in isolated.second.stderr

    def test_each_path_has_its_mode_and_owner_and_no_other_is_there(self, isolated: Installation) -> None:
        added = isolated.added()
        current = added.pop(CURRENT)
        release = f"{HOME}/{current.partition(' -> ')[2]}"
        shipped = {path: added.pop(path) for path in list(added) if path.startswith(RELEASE)}
        libexec = "/usr/local/libexec"  # trixie has it already
        added.setdefault(libexec, _about(isolated.states[1][libexec]))
        assert added == {**COMMON_PATHS, **ISOLATION_PATHS}
        assert set(shipped.values()) == RELEASE_MODES
        assert [path for path in shipped if shipped[path].startswith("-rwx")] == [
            f"{release}/bin/flink-gpu-discovery",
            f"{release}/bin/flink-gpu-discovery-root",
        ]

    def test_each_file_has_its_text(self, host: BootedHost, isolated: Installation) -> None:
        assert isolated.first.rc == 0
        check_golden(host, "isolation")

    def test_sudo_accepts_its_file_and_lets_each_user_call_the_script_alone(
        self, host: BootedHost, isolated: Installation
    ) -> None:
        assert isolated.first.rc == 0
        assert "/etc/sudoers.d/flink-gpu-discovery: parsed OK" in host.succeed("visudo", "-c")
        for user in ("flink", "other"):
            assert host.run("sudo", "-n", ROOT_SCRIPT, "status", user=user).code == 0
            assert host.run("sudo", "-n", "true", user=user).code == 1
        assert host.run("sudo", "-n", ROOT_SCRIPT, "status", user="nobody").code == 1

    def test_python_is_started_apart_from_its_surroundings(self, host: BootedHost, isolated: Installation) -> None:
        """-I: it would not start with that home. -S: nor read what packages let it run at each start."""
        assert isolated.first.rc == 0
        intruder = "/usr/lib/python3/dist-packages/intruder.pth"
        host.write(intruder, "import sys; sys.stderr.write('intruded')\n")
        try:
            assert host.run("python3", "-c", "").err == "intruded"
            done = host.run("env", "PYTHONHOME=/nonexistent", SCRIPT, "--version", user="flink")
        finally:
            host.succeed("rm", intruder)
        assert (done.code, done.err) == (0, "")

    @pytest.mark.parametrize("script", [SCRIPT, ROOT_SCRIPT])
    def test_its_bytecode_is_of_this_python_and_nothing_is_compiled_in_a_call(
        self, host: BootedHost, isolated: Installation, script: str
    ) -> None:
        done = host.run("/usr/bin/python3", "-ISv", script, "status")
        assert done.code == 0
        loaded = [line for line in done.err.splitlines() if line.startswith("# code object from") and "/opt/" in line]
        assert len(loaded) > 5
        assert [line for line in loaded if not line.endswith(".pyc'")] == []
        assert differences(isolated.states[2], snapshot(host)).keys() <= {f"{RUN}/root", f"{RUN}/root/lock"}

    def test_nvidias_binding_is_part_of_it(self, host: BootedHost, isolated: Installation) -> None:
        assert isolated.first.rc == 0
        asked = host.run(SCRIPT, "inventory", "--backend", "nvml", user="flink")
        assert (asked.code, "NVML Shared Library Not Found" in asked.err) == (71, True)

    def test_a_taskmanager_that_asks_owns_its_gpus_and_is_confined_to_them(
        self, host: BootedHost, managers: TaskManagers
    ) -> None:
        manager = managers.start()
        asked = manager.call(SCRIPT, "2", "--resource", "gpu")
        assert (asked.code, asked.out, asked.err) == (0, "0,1\n", "")
        assert {record["owner"]["pid"] for record in records(host)} == {manager.inner_pid}
        check_in_force(manager, {0, 1})
        other = managers.start("other.service", user="other")
        assert other.call(SCRIPT, "2").code == 0
        check_in_force(other, {2, 3})

    def test_the_ledgers_folder_comes_back_at_boot(self, host: BootedHost, managers: TaskManagers) -> None:
        host.succeed("rm", "-r", RUN)
        host.succeed("systemd-tmpfiles", "--create", "--remove", "--boot", "/etc/tmpfiles.d/flink-gpu-discovery.conf")
        assert snapshot(host)[RUN] == ISOLATION_PATHS[RUN]
        assert managers.start().call(SCRIPT, "2").code == 0


class TestWithCoordinationAlone:
    """Without root in any call."""

    def test_a_second_run_changes_nothing(self, coordinated: Installation) -> None:
        assert coordinated.second.changed == []
        assert differences(*coordinated.states[1:]) == {}

    def test_each_path_has_its_mode_and_owner_and_no_other_is_there(
        self, host: BootedHost, coordinated: Installation
    ) -> None:
        added = {path: about for path, about in coordinated.added().items() if not path.startswith((CURRENT, RELEASE))}
        ids = ":".join(host.succeed("id", kind, "flink").strip() for kind in ("-u", "-g"))
        assert added == {**COMMON_PATHS, RUN: f"drwxrwx--- {ids}"}

    def test_each_file_has_its_text(self, host: BootedHost, coordinated: Installation) -> None:
        assert coordinated.first.rc == 0
        check_golden(host, "coordination")

    def test_taskmanagers_share_the_gpus_and_keep_others_out(self, host: BootedHost, coordinated: Installation) -> None:
        assert coordinated.first.rc == 0
        assert [hold(host, name) for name in ("one", "two")] == ["0,1", "2,3"]
        call = ("sh", "-c", f"{SCRIPT} 1; exit $?")
        assert [(host.run(*call, user=user).code, user) for user in ("flink", "nobody")] == [
            (69, "flink"),
            (77, "nobody"),
        ]
        for name in ("one", "two"):
            host.succeed("systemctl", "stop", name)

    def test_the_ledgers_folder_comes_back_at_boot(self, host: BootedHost, coordinated: Installation) -> None:
        host.succeed("rm", "-r", RUN)
        host.succeed("systemd-tmpfiles", "--create", "--remove", "--boot", "/etc/tmpfiles.d/flink-gpu-discovery.conf")
        assert snapshot(host)[RUN] == coordinated.states[2][RUN]

    def test_isolation_goes_on_and_off_again_but_not_while_gpus_are_held_in_the_other_mode(
        self, control: ControlNode, host: BootedHost, coordinated: Installation
    ) -> None:
        assert hold(host, "one") == "0,1"
        refused = control.play(SITE, [host], variables=MORE, group=GROUP)
        assert refused.failures == [held_message(host, "one")]
        assert differences(coordinated.states[2], snapshot(host)).keys() <= {
            f"{RUN}/{name}" for name in ("ledger", "ledger.lock")
        }
        host.succeed("systemctl", "stop", "one")
        control.play(SITE, [host], variables=MORE, group=GROUP).must_succeed()
        check_golden(host, "isolation")
        assert hold(host, "one") == "0,1"
        refused = control.play(SITE, [host], variables=COORDINATED, group=GROUP)
        assert refused.failures == [held_message(host, "one")]
        check_golden(host, "isolation")
        host.succeed("systemctl", "stop", "one")
        control.play(SITE, [host], variables=COORDINATED, group=GROUP).must_succeed()
        left = differences(coordinated.states[2], snapshot(host))
        assert {path for path in left if not path.startswith(f"{RUN}/")} <= {*ACCOUNTS, f"{HOME}/record.json"}
