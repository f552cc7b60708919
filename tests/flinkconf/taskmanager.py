"""One real TaskManager, started by Flink's own script with a configuration folder that a test hands over."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

from tests.flink.configuration import cluster_settings, free_ports
from tests.flink.daemon import Daemon
from tests.flink.discovery_log import discovered_gpus, has_tried_discovery
from tests.flink.host import Host
from tests.flink.waiting import log_tails, wait_until

from .readers import FLAT, YAML

_DISCOVERY_SECONDS = 60.0
_END_SECONDS = 10.0
_WITHOUT = "Enabled external resources: []"


def base_settings(folder: Path) -> dict[str, str]:
    """Return what a TaskManager needs of its configuration to start and look for a JobManager in vain."""
    return {**cluster_settings(*free_ports(2)), "io.tmp.dirs": str(folder)}


def start_taskmanager(flink_home: Path, conf: Path, folder: Path) -> frozenset[str]:
    """Start a TaskManager, end it, and return the indexes of the GPUs that it has logged meanwhile.

    Its configuration files are those in `conf`; everything that it writes is in `folder`, which must not be there yet.
    Raises an AssertionError that holds what Flink said if it does not start, or its discovery script fails.
    """
    taskmanager = Daemon(flink_home, folder, "taskmanager.sh", {}, Host())
    _replace_files(folder / "conf", conf)
    taskmanager.launch()
    taskmanager.attach()
    try:
        wait_until(
            lambda: has_tried_discovery(taskmanager.log()) or _WITHOUT in taskmanager.log(),
            _DISCOVERY_SECONDS,
            "the TaskManager enables its external resources",
            folder,
        )
        gpus = discovered_gpus(taskmanager.log())
        assert gpus is not None or _WITHOUT in taskmanager.log(), log_tails(folder)
        return gpus or frozenset()
    finally:
        taskmanager.send(signal.SIGTERM)
        taskmanager.wait_for_end(_END_SECONDS)


def _replace_files(conf: Path, given: Path) -> None:
    for name in (FLAT, YAML):
        (conf / name).unlink(missing_ok=True)
        if (given / name).exists():
            shutil.copy2(given / name, conf)
