"""A run that is killed is mended by the next one, wherever it was."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from tests.booted.host import BootedHost
from tests.role.fleet import GROUP, ISOLATED, differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome, TaskResult
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(300, func_only=True)]

SITE, REMOVE = "flinkops.gpu.site", "flinkops.gpu.remove"
UNIT = "flink-taskmanager.service"
DROP_IN = f"/etc/systemd/system/{UNIT}.d/50-flink-gpu.conf"
FLINK = "/opt/flink/conf/config.yaml"
WANTED = {**ISOLATED, "flink_gpu_taskmanager_units": [UNIT], "flink_gpu_conf_dir": "/opt/flink/conf"}
FILES = "install | Put settings, permissions and drop-ins in their places"
SYSTEMCTL = "/usr/local/sbin/systemctl"  # before the real one, for whomever the role tells of changes
# As if the host went down at the moment at which systemd is to read its units.
DEADLY = """\
#!/bin/sh
case "$*" in daemon-reload) kill -9 $PPID ;; *) exec /usr/bin/systemctl "$@" ;; esac
"""


class Undisturbed(NamedTuple):
    """Runs of which none is killed, and the states between them."""

    before: dict[str, str]
    installation: Outcome
    installed: dict[str, str]
    removal: Outcome


def play(control: ControlNode, host: BootedHost, playbook: str, kill_at: int = 0) -> Outcome:
    return control.play(playbook, [host], variables=WANTED, group=GROUP, kill_at=kill_at)


def prepare(host: BootedHost) -> None:
    """GPUs, Flink, and a unit that runs, so that systemd has it in mind."""
    prepare_gpus(host)
    host.write(FLINK, "# ours\n")
    host.write("/opt/flink/lib/flink-dist-2.3.0.jar", "")
    host.write("/opt/flink/plugins/external-resource-gpu/driver.jar", "")
    host.unit(UNIT, "[Service]\nExecStart=/bin/sleep infinity\n")
    host.succeed("systemctl", "start", UNIT)


@pytest.fixture(scope="class")
def undisturbed(control: ControlNode, host: BootedHost) -> Undisturbed:
    """On the host on which runs are killed afterwards: it is as it was then."""
    prepare(host)
    before = snapshot(host)
    installation = play(control, host, SITE).must_succeed()
    installed = snapshot(host)
    removal = play(control, host, REMOVE).must_succeed()
    assert differences(before, snapshot(host)) == {}
    return Undisturbed(before, installation, installed, removal)


def following(results: Sequence[TaskResult], tasks: Sequence[str], once: str) -> list[int]:
    """Numbers of the tasks that come after these, in runs in which those of the file ``once`` are gone when done."""
    names = [result.task for result in results]
    before = {task: names[: names.index(task)] for task in tasks}
    gone = {
        task: 0 if task.startswith(once) else len([n for n in before[task] if n.startswith(once)]) for task in tasks
    }
    return [len(before[task]) + 2 - gone[task] for task in tasks]


def interrupt(control: ControlNode, host: BootedHost, playbook: str, numbers: Sequence[int]) -> None:
    """Kill a run before each of these tasks; each gets further than the one before."""
    states = [snapshot(host)]
    for number in numbers:
        assert play(control, host, playbook, kill_at=number).killed
        states.append(snapshot(host))
    assert all(differences(*pair) for pair in itertools.pairwise(states))


class TestKilledRuns:
    """Installation, then removal: a run is killed after every task that changes something, the last one is not."""

    def test_an_installation(self, control: ControlNode, host: BootedHost, undisturbed: Undisturbed) -> None:
        changed = undisturbed.installation.changed
        numbers = following(undisturbed.installation.results, changed, once="users | ")
        interrupt(control, host, SITE, numbers[:-1])
        last, again = (play(control, host, SITE).must_succeed() for _ in range(2))
        assert (last.changed, again.changed) == (changed[-1:], [])
        assert differences(undisturbed.installed, snapshot(host)) == {}

    def test_a_removal(self, control: ControlNode, host: BootedHost, undisturbed: Undisturbed) -> None:
        changed = undisturbed.removal.changed
        interrupt(control, host, REMOVE, following(undisturbed.removal.results, changed, once="flink | ")[:-1])
        assert play(control, host, REMOVE).must_succeed().changed == changed[-1:]
        assert differences(undisturbed.before, snapshot(host)) == {}


def test_systemd_reads_a_drop_in_that_an_interrupted_run_wrote(control: ControlNode, host: BootedHost) -> None:
    prepare(host)
    host.write(SYSTEMCTL, DEADLY, mode=0o755)
    killed = play(control, host, SITE)
    host.succeed("rm", SYSTEMCTL)
    assert (killed.rc, killed.named(FILES).status) == (2, "failed")
    host.succeed("test", "-f", DROP_IN)
    assert stop_commands(host) == ""
    assert play(control, host, SITE).must_succeed().changed[0] == FILES
    assert "flink-gpu-discovery reclaim" in stop_commands(host)


def stop_commands(host: BootedHost) -> str:
    """What systemd knows to do after the unit's end."""
    return host.succeed("systemctl", "show", "-P", "ExecStopPost", UNIT).strip()
