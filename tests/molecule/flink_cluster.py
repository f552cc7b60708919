"""Flink's own settings for a cluster on this machine's loopback address, in which nothing is said of GPUs.

usage: python -m tests.molecule.flink_cluster FLINK_HOME FOLDER
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.flink.configuration import cluster_settings, free_ports, write_configuration


def main(flink_home: Path, folder: Path) -> None:
    """``conf`` in the folder is for the hosts; ``rest-port``, made last, has the port of Flink's REST interface."""
    rpc_port, rest_port = free_ports(2)
    shutil.copytree(flink_home / "conf", folder / "conf", dirs_exist_ok=True)
    write_configuration(folder / "conf", cluster_settings(rpc_port, rest_port))
    (folder / "rest-port").write_text(str(rest_port), encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
