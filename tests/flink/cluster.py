"""One Flink cluster: a JobManager and TaskManagers that are started, killed and stopped one by one."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from .configuration import LOOPBACK, GpuSettings, cluster_settings, free_ports
from .daemon import Daemon
from .discovery_log import has_tried_discovery
from .host import Host
from .rest import RestClient
from .waiting import log_tails, wait_until

Found = TypeVar("Found")

START_LIMIT_SECONDS = 60.0
STOP_LIMIT_SECONDS = 15.0
JOB_LIMIT_SECONDS = 45.0

ENDED = frozenset({"FINISHED", "FAILED", "CANCELED"})


class Cluster:
    """A cluster below one folder. Every process in it was started here and is ended by `stop`."""

    def __init__(self, flink_home: Path, folder: Path, gpus: GpuSettings, host: Host | None = None) -> None:
        self.host = host or Host()
        self._flink_home = flink_home
        self._folder = folder
        self._gpus = gpus
        self._jobmanager: Daemon | None = None
        self._taskmanagers: list[Daemon] = []
        self._started = 0
        rpc_port, rest_port = free_ports(2)
        self._shared_settings = cluster_settings(rpc_port, rest_port)
        self._rest = RestClient(LOOPBACK, rest_port)

    def settle(self, count: int) -> list[Daemon]:
        """Return the cluster's TaskManagers once exactly `count` run and are registered."""
        self._start_jobmanager()
        for extra in self.live_taskmanagers()[count:]:
            self.end(extra, signal.SIGTERM)
        self.start_taskmanagers(count - len(self.live_taskmanagers()))
        live = self.live_taskmanagers()
        names = frozenset(taskmanager.name for taskmanager in live)
        self.wait_until(
            lambda: self._rest.taskmanagers() == names,
            START_LIMIT_SECONDS,
            f"just {sorted(names)} are registered",
        )
        return live

    def start_taskmanagers(self, count: int, gpus: GpuSettings | None = None) -> list[Daemon]:
        """Start TaskManagers at once and wait until each has tried to discover its GPUs."""
        started = [self._taskmanager(gpus or self._gpus) for _ in range(count)]
        for taskmanager in started:
            taskmanager.launch()
        for taskmanager in started:
            taskmanager.attach()
            self._await_discovery(taskmanager)
        return started

    def live_taskmanagers(self) -> list[Daemon]:
        """Return the TaskManagers that run."""
        return [taskmanager for taskmanager in self._taskmanagers if taskmanager.is_alive()]

    def end(self, daemon: Daemon, number: signal.Signals) -> None:
        """End one process with a signal and wait until it is gone."""
        daemon.send(number)
        daemon.wait_for_end(STOP_LIMIT_SECONDS)

    def run_job(self, jar: Path, entry_class: str, *arguments: str) -> None:
        """Run a job with one subtask on each TaskManager and wait until it has finished."""
        parallelism = len(self.live_taskmanagers())
        job_id = self._rest.run_jar(jar, entry_class, arguments, parallelism)
        self.wait_until(lambda: self._rest.job_state(job_id) in ENDED, JOB_LIMIT_SECONDS, f"{entry_class} ends")
        state = self._rest.job_state(job_id)
        assert state == "FINISHED", f"{entry_class} is {state}\n{log_tails(self._folder)}"

    def stop(self) -> None:
        """End every process of the cluster, also after a start that failed half-way."""
        daemons = [*self._taskmanagers, *([self._jobmanager] if self._jobmanager else [])]
        for daemon in daemons:
            with contextlib.suppress(AssertionError, subprocess.TimeoutExpired):
                daemon.attach()
            daemon.send(signal.SIGTERM)
        for daemon in daemons:
            daemon.wait_for_end(STOP_LIMIT_SECONDS)

    def wait_until(self, probe: Callable[[], Found], seconds: float, what: str) -> Found:
        """Wait for a true answer; fail with the ends of the cluster's logs."""
        return wait_until(probe, seconds, what, self._folder)

    def _start_jobmanager(self) -> None:
        if self._jobmanager is None or not self._jobmanager.is_alive():
            self._jobmanager = self._daemon("jobmanager", self._gpus)
            self._jobmanager.launch()
            self._jobmanager.attach()

    def _await_discovery(self, taskmanager: Daemon) -> None:
        self.wait_until(
            lambda: has_tried_discovery(taskmanager.log()),
            START_LIMIT_SECONDS,
            f"{taskmanager.name} runs the discovery script",
        )

    def _taskmanager(self, gpus: GpuSettings) -> Daemon:
        taskmanager = self._daemon("taskmanager", gpus)
        self._taskmanagers.append(taskmanager)
        return taskmanager

    def _daemon(self, kind: str, gpus: GpuSettings) -> Daemon:
        """Prepare a process under a name that no other has had, so that its logs are its own."""
        self._started += 1
        name = f"{kind}-{self._started}"
        settings = {**self._shared_settings, **gpus.as_flink_settings(), "taskmanager.resource-id": name}
        return Daemon(self._flink_home, self._folder / name, f"{kind}.sh", settings, self.host)
