"""Flink's configuration files, for a cluster on the loopback address with one external resource, `gpu`."""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class GpuSettings:
    """How a TaskManager discovers its GPUs; without `args` Flink appends the literal word null."""

    script: Path
    args: str | None = None
    amount: int = 2

    def as_flink_settings(self) -> dict[str, str]:
        """Return the keys of Flink's configuration that say this."""
        prefix = "external-resource.gpu"
        settings = {
            "external-resources": "gpu",
            f"{prefix}.amount": str(self.amount),
            f"{prefix}.driver-factory.class": "org.apache.flink.externalresource.gpu.GPUDriverFactory",
            f"{prefix}.param.discovery-script.path": str(self.script),
        }
        if self.args is not None:
            settings[f"{prefix}.param.discovery-script.args"] = self.args
        return settings


def cluster_settings(rpc_port: int, rest_port: int) -> dict[str, str]:
    """Return the settings that a JobManager and its TaskManagers share."""
    return {
        "jobmanager.rpc.address": LOOPBACK,
        "jobmanager.rpc.port": str(rpc_port),
        "jobmanager.bind-host": LOOPBACK,
        "jobmanager.memory.process.size": "1024m",
        "rest.address": LOOPBACK,
        "rest.bind-address": LOOPBACK,
        "rest.port": str(rest_port),
        "taskmanager.host": LOOPBACK,
        "taskmanager.bind-host": LOOPBACK,
        "taskmanager.numberOfTaskSlots": "1",
        "taskmanager.memory.process.size": "1024m",
        # A killed TaskManager is missed after two heartbeats; the default of 10 s each would be waited for.
        "heartbeat.interval": "1000",
        "heartbeat.timeout": "20000",
    }


def write_configuration(folder: Path, settings: Mapping[str, str]) -> None:
    """Append settings to the configuration file in `folder`; of one key spelled twice, the later counts."""
    modern = folder / "config.yaml"  # the only one since Flink 2.0
    file = modern if modern.exists() else folder / "flink-conf.yaml"
    quote = json.dumps if file == modern else str
    with file.open("a") as output:
        output.writelines(f"\n{key}: {quote(value)}" for key, value in settings.items())
        output.write("\n")


def free_ports(count: int) -> list[int]:
    """Choose free TCP ports on the loopback address, below those that the kernel gives to connections."""
    candidates = range(20000, 32000)
    return list(islice(filter(_is_free, random.sample(candidates, len(candidates))), count))


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
