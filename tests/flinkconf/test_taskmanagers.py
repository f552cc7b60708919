"""A TaskManager of each release gets its GPUs with each file that it reads, or says why it can't."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.script import SCRIPT

from .readers import FLAT, READERS, YAML, Reader, put
from .taskmanager import base_settings, start_taskmanager

pytestmark = [pytest.mark.flink, pytest.mark.timeout(150, func_only=True)]

GPUS = {
    FLAT: """\
external-resources: gpu
external-resource.gpu.amount: 2
external-resource.gpu.driver-factory.class: org.apache.flink.externalresource.gpu.GPUDriverFactory
external-resource.gpu.param.discovery-script.path: {script}
external-resource.gpu.param.discovery-script.args: {args}
""",
    YAML: """\
external-resources: [gpu]
external-resource:
  gpu:
    amount: 2
    driver-factory:
      class: org.apache.flink.externalresource.gpu.GPUDriverFactory
    param:
      discovery-script:
        path: {script}
        args: {args}
""",
}


def configuration(file: str, folder: Path) -> str:
    """A file with which a TaskManager gets two of four simulated GPUs."""
    args = f"--resource gpu --coordinate --check-dead --backend simulated:4 --ledger {folder}/ledger"
    base = "".join(f"{key}: {value}\n" for key, value in base_settings(folder).items())
    return base + GPUS[file].format(script=SCRIPT, args=args)


def test_a_taskmanager_discovers_its_gpus(reader: Reader, flink_home: Path, tmp_path: Path) -> None:
    conf = put(tmp_path / "conf", {reader.file: configuration(reader.file, tmp_path).encode()})

    assert start_taskmanager(flink_home, conf, tmp_path / "taskmanager") == {"0", "1"}


def test_names_with_a_comma_are_one_name_so_a_taskmanager_starts_without_gpus(
    reader: Reader, flink_home: Path, tmp_path: Path
) -> None:
    text = configuration(reader.file, tmp_path)
    text = re.sub("^external-resources: .*", "external-resources: gpu,fpga", text, flags=re.MULTILINE)
    conf = put(tmp_path / "conf", {reader.file: text.encode()})

    assert start_taskmanager(flink_home, conf, tmp_path / "taskmanager") == frozenset()


def test_an_amount_that_is_no_number_keeps_a_taskmanager_from_starting(
    reader: Reader, flink_home: Path, tmp_path: Path
) -> None:
    text = configuration(reader.file, tmp_path).replace("amount: 2", "amount: two")
    conf = put(tmp_path / "conf", {reader.file: text.encode()})

    with pytest.raises(AssertionError, match=r"was not started(.|\n)*Could not parse value 'two'"):
        start_taskmanager(flink_home, conf, tmp_path / "taskmanager")


@pytest.mark.parametrize("reader", [reader for reader in READERS if reader.file == YAML], ids=str)
def test_a_config_yaml_that_the_loader_refuses_keeps_a_taskmanager_from_starting(
    reader: Reader, flink_home: Path, tmp_path: Path
) -> None:
    text = configuration(reader.file, tmp_path) + "external-resources: gpu\n"
    conf = put(tmp_path / "conf", {reader.file: text.encode()})

    with pytest.raises(AssertionError, match=r"was not started(.|\n)*found duplicate key external-resources"):
        start_taskmanager(flink_home, conf, tmp_path / "taskmanager")
