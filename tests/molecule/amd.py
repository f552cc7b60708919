"""Build AMD's stand-ins of Molecule's hosts: four GPUs in the kernel's topology, and a ``rocm-smi`` that knows them.

usage: python -m tests.molecule.amd FILE.tar
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.standins import kfd, rocm_smi

IDS = tuple(0xF11E000000000001 + number for number in range(4))
UUIDS = tuple(f"GPU-{number:016x}" for number in IDS)
_ADDRESSES = tuple(f"0000:{bus:02x}:00.0" for bus in (0x23, 0x43, 0x63, 0x83))


def main(archive: Path) -> None:
    """What is unpacked at the root of a host; ``/usr/local/lib/sys-class`` stands for ``/sys/class``."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        pairs = list(zip(_ADDRESSES, IDS, strict=True))
        gpus = [kfd.KfdGpu(pci, 128 + number, number, unique) for number, (pci, unique) in enumerate(pairs)]
        tree = kfd.install(Path(name) / "sys", [kfd.KfdCpu(), *gpus])
        shutil.copytree(tree / "class/kfd", root / "usr/local/lib/sys-class/kfd")  # links become what they lead to
        cards = tuple(rocm_smi.AmdGpu(pci, number, unique) for number, (pci, unique) in enumerate(pairs))
        (root / "opt/rocm/bin").mkdir(parents=True)
        rocm_smi.install(root / "opt/rocm/bin", rocm_smi.RocmSmi(cards))
        with tarfile.open(archive, "w") as tar:
            for path in sorted(root.iterdir()):
                tar.add(path, path.name, filter=_as_root)


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[1]))
