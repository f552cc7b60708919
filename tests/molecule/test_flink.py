"""TaskManagers of real Flink that run just now: each holds GPUs of its own, and a job in it opens no other."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.booted.host import ContainerHost
from tests.booted.installation import NODES
from tests.booted.taskmanager import confinements, records
from tests.flink.configuration import LOOPBACK
from tests.flink.conftest import flink_home
from tests.flink.discovery_log import discovered_gpus, failed_script
from tests.flink.job import ENTRY_CLASS, Report, compile_job, read_report
from tests.flink.rest import RestClient
from tests.flink.waiting import wait_until
from tests.molecule.conftest import Site
from tests.molecule.nvml import UUIDS

__all__ = ["flink_home"]

pytestmark = pytest.mark.timeout(180, func_only=True)

STATE = Path(os.environ.get("MOLECULE_EPHEMERAL_DIRECTORY", ".")) / "flink"
INSTANCES = 2  # on each host
REPORTS = "/run/reports"
CONTROL = "/dev/nvidiactl"
LIST = "systemctl list-units --plain --no-legend --state=active 'flink-taskmanager@*'"
PIDS = f"{LIST} | while read unit rest; do systemctl show --property=MainPID --value $unit; done"
JOB_SECONDS = 60.0
ENDED = {"FINISHED", "FAILED", "CANCELED"}


def running(host: ContainerHost) -> set[int]:
    """The TaskManagers' PIDs, as systemd knows them."""
    return {int(pid) for pid in host.succeed("sh", "-c", PIDS).split()}


@pytest.fixture(scope="session")
def hosts(sites: list[Site]) -> list[ContainerHost]:
    return [site.host for site in sites]


@pytest.fixture(scope="session")
def reports(hosts: list[ContainerHost], flink_home: Path) -> list[dict[int, Report]]:
    """What a job saw in each TaskManager that runs, by host and PID: the ids that Flink has, and what opens."""
    jar = STATE / "report-gpus.jar"  # which this compiles once
    if not jar.exists():
        assert compile_job(flink_home, STATE).jar == jar
    rest = RestClient(LOOPBACK, int((STATE / "rest-port").read_text(encoding="ascii")))
    for host in hosts:
        host.succeed("sh", "-ec", f"rm -rf {REPORTS}; install -d -o flink {REPORTS}")
    count = sum(len(running(host)) for host in hosts)
    if count:
        job = rest.run_jar(jar, ENTRY_CLASS, [REPORTS, CONTROL, *NODES], count)
        state = wait_until(lambda: rest.job_state(job) in ENDED and rest.job_state(job), JOB_SECONDS, "the job", STATE)
        assert state == "FINISHED"
    return [
        {
            int(pid): read_report(host.succeed("cat", f"{REPORTS}/{pid}").splitlines())
            for pid in host.succeed("ls", REPORTS).split()
        }
        for host in hosts
    ]


def test_as_many_run_as_were_started(site: Site) -> None:
    assert len(running(site.host)) == int((STATE / "running").read_text(encoding="ascii"))


def test_the_ledger_holds_two_gpus_of_each_taskmanager_that_runs_and_nothing_else(site: Site) -> None:
    told = records(site.host)
    owners = [record["owner"]["pid"] for record in told]
    assert {pid: owners.count(pid) for pid in owners} == dict.fromkeys(running(site.host), site.amount)
    assert {record["confinement"] for record in told} <= {"in force"}
    assert len({record["uuid"] for record in told}) == len(told)
    assert len(confinements(site.host)) == len(set(owners))


def test_each_taskmanager_has_been_told_its_gpus_and_opens_them_and_no_others(
    hosts: list[ContainerHost], reports: list[dict[int, Report]]
) -> None:
    for host, seen in zip(hosts, reports, strict=True):
        held: dict[int, set[str]] = {}
        for record in records(host):
            held.setdefault(record["owner"]["pid"], set()).add(NODES[UUIDS.index(record["uuid"])])
        assert seen.keys() == held.keys() == running(host)
        for pid, report in seen.items():
            # What each is told are numbers among the GPUs that it may open.
            assert report.indexes == {str(number) for number in range(len(held[pid]))}
            opened = {node for node, answer in report.answers.items() if answer == os.strerror(errno.ENXIO)}
            denied = {node for node, answer in report.answers.items() if answer == os.strerror(errno.EPERM)}
            assert opened == {CONTROL, *held[pid]}
            assert denied == {*NODES} - held[pid]


def test_every_taskmanagers_log_tells_that_it_has_learned_of_its_gpus(site: Site) -> None:
    logs = site.host.succeed("sh", "-c", "ls /var/log/flink/*-taskexecutor-*.log").split()
    assert len(logs) == INSTANCES
    for log in logs:
        text = site.host.succeed("cat", log)
        assert discovered_gpus(text) == frozenset(map(str, range(site.amount))), failed_script(text)
