"""TaskManagers of an unprivileged user, confined through sudo, open their own GPUs' nodes and no other GPU's."""

from __future__ import annotations

import errno
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.isolation.cards import Card
from tests.isolation.hierarchies import VIEWS, WITH_V1, View, why_impossible
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, Lab

from .cluster import Cluster
from .configuration import GpuSettings
from .daemon import Daemon
from .discovery_log import discovered_gpus, failed_script
from .job import ReportJob
from .lab_host import LabHost

pytestmark = [pytest.mark.flink, pytest.mark.timeout(120, func_only=True)]

# No number follows from another: neither the nodes' from the index, nor the two kinds of DRM nodes' from each other.
CARDS = (
    Card(0, minor=4, drm=("card1", "renderD129")),
    Card(1, minor=1, drm=("card3", "renderD128")),
    Card(2, minor=7, drm=("card0", "renderD131")),
    Card(3, minor=2, drm=("card2", "renderD130")),
)
GPU_NODES = {card.uuid: frozenset({card.node, *card.drm_nodes}) for card in CARDS}
SHARED_NODES = frozenset({"/dev/nvidiactl", "/dev/nvidia-uvm"})
ALL_NODES = SHARED_NODES.union(*GPU_NODES.values())
ORDINALS = frozenset({"0", "1"})  # what each is told, since CUDA counts what it may open

DENIED = os.strerror(errno.EPERM)
ALLOWED = os.strerror(errno.ENXIO)  # no driver is behind the nodes

SETTINGS = """\
[flink-gpu-discovery]
backend = nvml
check-dead = yes
max-gpus-per-owner = 2
"""


@dataclass(frozen=True)
class Stage:
    """A lab with four GPUs, the cluster that its user runs there, and a folder that the user reaches."""

    lab: Lab
    cluster: Cluster
    job: ReportJob
    folder: Path

    def gpus_by_owner(self) -> dict[int, frozenset[str]]:
        """Return the UUIDs that each owner holds; every one's confinement has to be in force, with the owner in it."""
        status = self.lab.run(SCRIPT, "status", "--json", "--isolate")
        assert status.code == 0, status.err
        held: dict[int, frozenset[str]] = {}
        for record in json.loads(status.out)["records"]:
            pid = record["owner"]["pid"]
            assert (record["state"], record["confinement"], record["owner"]["uid"]) == ("held", "in force", FLINK)
            assert str(pid) in self.lab.path(f"{record['cgroup']}/cgroup.procs").read_text().split()
            held[pid] = held.get(pid, frozenset()) | {record["uuid"]}
        return held

    def check_each_opens_its_own(self, taskmanagers: tuple[Daemon, Daemon]) -> dict[int, frozenset[str]]:
        """Let a job in both TaskManagers try all nodes; return the UUIDs that each of them holds by the ledger."""
        for taskmanager in taskmanagers:
            assert discovered_gpus(taskmanager.log()) == ORDINALS, failed_script(taskmanager.log())
        held = self.gpus_by_owner()
        first, second = (held[taskmanager.pid] for taskmanager in taskmanagers)
        assert len(first) == len(second) == 2
        assert first | second == GPU_NODES.keys()

        folder = self.folder / f"report-{'-'.join(map(str, sorted(held)))}"
        reports = self.job.run_and_open(self.cluster, folder, sorted(ALL_NODES))

        assert {pid: report.indexes for pid, report in reports.items()} == dict.fromkeys(held, ORDINALS)
        for pid, report in reports.items():
            own = SHARED_NODES.union(*(GPU_NODES[uuid] for uuid in held[pid]))
            assert report.answers == {node: ALLOWED if node in own else DENIED for node in ALL_NODES}
        return held

    def confinements(self) -> list[Path]:
        """Return the cgroups of confined owners, wherever in the lab."""
        tops = {folder.parent for folder in self.lab.cgroup("tests").folders}
        return [found for top in tops for found in top.rglob("flink-gpu-*")]


@pytest.fixture(scope="module", params=VIEWS)
def stage(
    request: pytest.FixtureRequest,
    flink_home: Path,
    report_job: ReportJob,
    nvml_library: Path,
    release: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    """A lab and its cluster, in each layout of the cgroups in turn.

    pytest's own temporary folders won't do for another user: each pytest that starts makes them private again.
    """
    view: View = request.param
    reason = why_impossible(view)
    if reason:
        pytest.skip(reason)
    with (
        tempfile.TemporaryDirectory(prefix="flink-gpu-cluster-") as name,
        Lab(tmp_path_factory.mktemp("lab"), view, library=nvml_library, release=release) as lab,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        lab.install()
        lab.nvidia(*CARDS)
        lab.settings(SETTINGS)
        gpus = GpuSettings(Path(SCRIPT), "--isolate", amount=2)
        cluster = Cluster(flink_home, folder, gpus, LabHost(lab, flink_home))
        try:
            yield Stage(lab, cluster, report_job, folder)
        finally:
            cluster.stop()


@pytest.fixture
def pair(stage: Stage) -> tuple[Daemon, Daemon]:
    """The cluster's two TaskManagers: started, registered, and alone, whatever ran before."""
    first, second = stage.cluster.settle(2)
    return first, second


def test_each_taskmanager_opens_its_own_gpus_and_no_others(stage: Stage, pair: tuple[Daemon, Daemon]) -> None:
    held = stage.check_each_opens_its_own(pair)

    assert held.keys() == {taskmanager.pid for taskmanager in pair}
    assert len(stage.confinements()) == 2


@pytest.mark.parametrize("stage", WITH_V1, indirect=True)  # each kind of device cgroup once
def test_the_successor_of_a_killed_taskmanager_is_confined_to_the_gpus_that_it_takes_over(
    stage: Stage, pair: tuple[Daemon, Daemon]
) -> None:
    killed, survivor = pair
    before = stage.gpus_by_owner()
    stage.cluster.end(killed, signal.SIGKILL)

    survivor, successor = stage.cluster.settle(2)
    after = stage.check_each_opens_its_own((survivor, successor))

    assert after == {survivor.pid: before[survivor.pid], successor.pid: before[killed.pid]}
    assert len(stage.confinements()) == 2


@pytest.mark.usefixtures("pair")
def test_reclaim_leaves_no_records_and_no_cgroups_after_the_cluster_has_stopped(stage: Stage) -> None:
    assert len(stage.confinements()) == 2
    stage.cluster.stop()

    reclaimed = stage.lab.run(SCRIPT, "reclaim", "--isolate")

    assert (reclaimed.code, reclaimed.err) == (0, "")
    assert stage.gpus_by_owner() == {}
    assert stage.confinements() == []
