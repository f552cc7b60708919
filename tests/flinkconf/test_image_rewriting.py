"""What the official images' entry point does to a configuration file, by the script of the release that it runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from .answers import GPU
from .loader import Loader
from .readers import FLAT, READERS, YAML, Reader, put

pytestmark = pytest.mark.flink

REWRITERS = [reader for reader in READERS if YAML in reader.files()]  # since 1.19
IN_YAML = [reader for reader in REWRITERS if reader.file == YAML]

SCRIPT, ARGS = f"{GPU}param.discovery-script", f"{GPU}param.discovery-script.args"
FLIP_108 = f"{SCRIPT}: /x\n{ARGS}: --a b\n"


def rewritten(flink_home: Path, file: Path) -> str:
    """The file's text after a start of the image; the script has to report success."""
    command = [flink_home / "bin/config-parser-utils.sh", file.parent, flink_home / "bin", flink_home / "lib"]
    environment = {name: os.environ[name] for name in ("PATH", "JAVA_HOME") if name in os.environ}
    subprocess.run(command, check=True, env=environment, capture_output=True, timeout=30)
    return file.read_text()


@pytest.mark.parametrize("reader", REWRITERS, ids=str)
def test_comments_are_lost_and_settings_are_kept(
    reader: Reader, flink_home: Path, loader: Loader, tmp_path: Path
) -> None:
    names = "gpu;fpga" if reader.file == FLAT else "[gpu, fpga]"
    text = f"# ours\nexternal-resources: {names}\n{GPU}amount: 2\nexternal-resource.fpga.amount: 1\n"
    conf = put(tmp_path, {reader.file: text.encode()})
    before = loader.load(conf)

    assert "# ours" not in rewritten(flink_home, conf / reader.file)
    assert loader.load(conf) == before
    assert before.resources == {"gpu": "2", "fpga": "1"}


@pytest.mark.parametrize("reader", REWRITERS, ids=str)
def test_of_flip_108s_two_keys_the_arguments_are_lost_in_config_yaml_only(
    reader: Reader, flink_home: Path, loader: Loader, tmp_path: Path
) -> None:
    conf = put(tmp_path, {reader.file: FLIP_108.encode()})
    rewritten(flink_home, conf / reader.file)

    assert loader.load(conf).settings == {SCRIPT: "/x", **({ARGS: "--a b"} if reader.file == FLAT else {})}


@pytest.mark.parametrize("reader", IN_YAML, ids=str)
def test_a_file_that_can_not_be_loaded_is_replaced_by_a_stack_trace(
    reader: Reader, flink_home: Path, tmp_path: Path
) -> None:
    conf = put(tmp_path, {reader.file: b"a: 1\na: 2\n"})

    assert "YamlEngineException" in rewritten(flink_home, conf / reader.file)
