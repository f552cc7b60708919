"""``--check --diff`` changes nothing, and tells what the next run does, however the host stands."""

from __future__ import annotations

import pytest

from tests.booted.host import BootedHost
from tests.booted.installation import HOME, SUDOERS
from tests.isolation.installation import CURRENT, ROOT_SCRIPT, SCRIPT
from tests.role.fleet import GROUP, ISOLATED, VARIABLES, differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

SITE = "flinkops.gpu.site"
UNITS = {"flink_gpu_taskmanager_units": ["flink-taskmanager@.service"]}
WANTED = {**ISOLATED, **UNITS}
SETTINGS = "/etc/flink-gpu-discovery.conf"
DROP_IN = "/etc/systemd/system/flink-taskmanager@.service.d/50-flink-gpu.conf"
RUN = "/run/flink-gpu-discovery"
MARK = "/tmp/before-the-check"
# Since the mark: also what was written anew with the same content, and what came and went in a folder.
TOUCHED = f"find /etc /opt /usr/local /var/lib {RUN} -newercc {MARK}"

RELEASE, FILES, FOLDER = (
    "install | Ship the release",
    "install | Put settings, permissions and drop-ins in their places",
    "install | Make the ledger's folder",
)
USERS = [
    "users | Write down what is made here, for a removal to undo",
    "users | Make the group",
    "users | Make the users",
]
# What is done to an installed host, and which tasks mend it.
DAMAGE = {
    "damaged-and-edited": (
        f"echo >>{CURRENT}/pynvml.py; rm -r {CURRENT}/flink_gpu_discovery/__pycache__; echo '# mine' >>{SETTINGS};"
        f" ln -sf /bin/true {ROOT_SCRIPT}; rm {SCRIPT}; chmod 0700 {RUN}; chown 1:1 {SUDOERS}",
        [RELEASE, FILES, FOLDER],
    ),
    "parts-missing": (
        f"rm -r {CURRENT} {SUDOERS} {DROP_IN} {RUN}; chmod 0666 {SETTINGS}",
        [RELEASE, FILES, FOLDER],
    ),
    "all-below-opt-lost": (f"rm -r {HOME}", [RELEASE, FILES]),
}


def check(control: ControlNode, host: BootedHost, variables: dict[str, object]) -> Outcome:
    """Play in check mode, and see that it touched nothing."""
    before = snapshot(host)
    host.succeed("touch", MARK)
    outcome = control.play(SITE, [host], check=True, diff=True, variables=variables, group=GROUP).must_succeed()
    assert differences(before, snapshot(host)) == {}
    assert host.run("sh", "-c", TOUCHED).out == ""
    return outcome


def play(control: ControlNode, host: BootedHost, variables: dict[str, object]) -> Outcome:
    return control.play(SITE, [host], variables=variables, group=GROUP).must_succeed()


def mended(state: dict[str, str], now: dict[str, str]) -> bool:
    """Whether all is as it was, but for ledgers, and a record that knows of more or less than before."""
    left = {path for path in differences(state, now) if not path.startswith(f"{RUN}/")}
    return left <= {f"{HOME}/record.json"}


@pytest.fixture(scope="class")
def fresh(host: BootedHost) -> BootedHost:
    """With GPUs, and nothing installed; in the order of the tests."""
    prepare_gpus(host)
    return host


class TestCheckMode:
    """On one host, the tests one after the other: each leaves it installed."""

    def test_a_fresh_host(self, control: ControlNode, fresh: BootedHost) -> None:
        checked = check(control, fresh, WANTED)
        assert checked.changed == [*USERS, RELEASE, FILES, FOLDER]
        assert play(control, fresh, WANTED).changed == checked.changed
        shown = {diff["after_header"]: diff["after"] for diff in checked.diffs[FILES]}
        for path in (SETTINGS, SUDOERS, DROP_IN):
            assert shown[path] == fresh.succeed("cat", path)
        fresh.succeed("sh", "-c", f"{SCRIPT} 1; exit $?")  # from now on there is a ledger to be read

    def test_an_installed_host(self, control: ControlNode, fresh: BootedHost) -> None:
        assert check(control, fresh, WANTED).changed == []

    @pytest.mark.parametrize("damage", DAMAGE)
    def test_a_half_installed_host(self, control: ControlNode, fresh: BootedHost, damage: str) -> None:
        script, tasks = DAMAGE[damage]
        whole = snapshot(fresh)
        fresh.succeed("sh", "-ec", script)
        checked = check(control, fresh, WANTED)
        assert (checked.changed, checked.failures) == (tasks, [])
        assert play(control, fresh, WANTED).changed == tasks
        assert mended(whole, snapshot(fresh))

    def test_a_host_that_is_to_change(self, control: ControlNode, fresh: BootedHost) -> None:
        checked = check(control, fresh, VARIABLES)
        assert checked.changed == [FILES, FOLDER]
        gone = {diff["before_header"] for diff in checked.diffs[FILES] if diff["after_header"].endswith("(absent)")}
        assert {SUDOERS, ROOT_SCRIPT, DROP_IN} < gone
        assert play(control, fresh, VARIABLES).changed == checked.changed
        assert [path for path in gone if fresh.run("test", "-e", path).code == 0] == []
