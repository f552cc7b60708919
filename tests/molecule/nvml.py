"""Build the NVML stand-in of Molecule's hosts: four GPUs, whose device nodes it opens as the real one does.

usage: python -m tests.molecule.nvml FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.booted.installation import NODES
from tests.standins.nvml.build import build
from tests.standins.nvml.scenario import Gpu, Scenario, write

PLACE = Path("/usr/local/lib/flink-gpu-nvml")  # on hosts
UUIDS = tuple(f"GPU-f11e0000-0000-4000-8000-{index:012d}" for index in range(len(NODES)))


def main(folder: Path) -> None:
    """The library, and the scenario that it reads, in one folder."""
    build(folder, default_scenario=PLACE / "scenario")
    gpus = tuple(
        Gpu(uuid, minor=minor, nodes=(node,)) for minor, (uuid, node) in enumerate(zip(UUIDS, NODES, strict=True))
    )
    write(Scenario(gpus, open_nodes="hide"), folder / "scenario")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
