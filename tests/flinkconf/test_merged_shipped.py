"""The configuration that a release ships, which most operators have, is merged into; a TaskManager starts with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

from tests.support.script import SCRIPT

from .loader import Loader
from .merging import FORMATS, check_merged, check_removed
from .readers import READERS, Reader, put
from .taskmanager import base_settings, start_taskmanager

pytestmark = [pytest.mark.flink, pytest.mark.timeout(150, func_only=True)]

SHIPPED = [reader for reader in READERS if reader.file == reader.files()[-1]]


@pytest.mark.parametrize("protocol", ["released", "flip108"])
@pytest.mark.parametrize("reader", SHIPPED, ids=str)
def test_a_shipped_file_gets_lines_at_its_end_and_gives_them_back(
    reader: Reader, protocol: str, flink_home: Path, loader: Loader
) -> None:
    shipped = (flink_home / "conf" / reader.file).read_bytes()
    wanted = wanted_settings([Resource("gpu", 2), Resource("more", 1)], protocol=protocol)
    merged = flink_conf.merge(shipped, FORMATS[reader.file], wanted)
    before, after = (loader.load_files({reader.file: content}) for content in (shipped, merged))

    assert merged.startswith(shipped)
    check_merged(before, after, wanted)
    check_removed(after, before, ["gpu", "more"])
    assert flink_conf.remove(merged, FORMATS[reader.file], ["gpu", "more"]) == shipped


def test_a_taskmanager_gets_its_gpus_by_a_merged_file(reader: Reader, flink_home: Path, tmp_path: Path) -> None:
    args = f"--coordinate --backend simulated:4 --ledger {tmp_path}/ledger"
    wanted = wanted_settings([Resource("gpu", 2, script=str(SCRIPT), args=args)])
    merged = flink_conf.merge(installed(reader, flink_home, tmp_path), FORMATS[reader.file], wanted)
    conf = put(tmp_path / "conf", {reader.file: merged})

    assert start_taskmanager(flink_home, conf, tmp_path / "taskmanager") == {"0", "1"}


def installed(reader: Reader, flink_home: Path, folder: Path) -> bytes:
    """What the release ships under that name, or where it reads it only, what a TaskManager needs."""
    shipped = flink_home / "conf" / reader.file
    if shipped.exists():
        return shipped.read_bytes()
    return "".join(f"{key}: {value}\n" for key, value in base_settings(folder).items()).encode()
