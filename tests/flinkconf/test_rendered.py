"""What is rendered is what Flink itself reads: its settings, its external resources, a TaskManager's GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.render.golden import CASES, GOLDEN, amounts, wanted
from tests.support.script import SCRIPT

from .loader import Loader
from .readers import FLAT, Reader, put
from .taskmanager import base_settings, start_taskmanager

pytestmark = pytest.mark.flink

_NAMES = "external-resources"


def rendered(reader: Reader, case: str) -> str:
    """The golden file of that name; 1.19 and 1.20 get the flat one, that of 1.18, where they have one already."""
    version = "1.18.1" if reader.file == FLAT else reader.version
    return (GOLDEN / version / case / reader.file).read_text()


@pytest.mark.parametrize("case", CASES)
def test_flink_reads_exactly_the_settings_that_were_asked_for(case: str, reader: Reader, loader: Loader) -> None:
    loaded = loader.load_files({reader.file: rendered(reader, case).encode()})
    settings = wanted(case)
    names = settings[_NAMES]

    assert (loaded.error, loaded.log) == (None, ())
    assert loaded.settings == {**settings, _NAMES: names if reader.file == FLAT else listed(names)}
    assert loaded.resources == amounts(case)


def listed(names: str) -> str:
    """As Flink shows a list."""
    return f"[{', '.join(names.split(';'))}]"


@pytest.mark.timeout(150, func_only=True)
def test_a_taskmanager_discovers_its_gpus_by_a_rendered_file(reader: Reader, flink_home: Path, tmp_path: Path) -> None:
    base = "".join(f"{key}: {value}\n" for key, value in base_settings(tmp_path).items())
    args = f"--resource gpu --coordinate --backend simulated:4 --ledger {tmp_path}/ledger"
    text = rendered(reader, "standalone")
    text = text.replace("/usr/local/bin/flink-gpu-discovery", str(SCRIPT)).replace("--resource gpu", args)
    conf = put(tmp_path / "conf", {reader.file: (base + text).encode()})

    assert start_taskmanager(flink_home, conf, tmp_path / "taskmanager") == {"0", "1"}
