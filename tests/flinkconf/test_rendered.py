"""What is rendered is what Flink itself reads: its settings, its external resources, a TaskManager's GPUs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.render.golden import CASES, FLAT_ONLY, GOLDEN, amounts, wanted
from tests.support.script import SCRIPT

from .loader import Loaded, Loader
from .readers import FLAT, READERS, Reader, put
from .taskmanager import base_settings, start_taskmanager

pytestmark = pytest.mark.flink

_NAMES = "external-resources"
_ARGS = "external-resource.gpu.param.discovery-script.args"
RENDERED = [
    pytest.param(reader, case, id=f"{reader}-{case}")
    for reader in READERS
    for case in CASES
    if reader.file == FLAT or case not in FLAT_ONLY
]
ON_A_CLUSTER = [each for each in RENDERED if not str(each.values[1]).startswith("standalone")]


def rendered(reader: Reader, case: str) -> str:
    """The golden file of that name; 1.19 and 1.20 get the flat one, that of 1.18, where they have one already."""
    version = "1.18.1" if reader.file == FLAT else reader.version
    return (GOLDEN / version / case / reader.file).read_text()


@pytest.mark.parametrize(("reader", "case"), RENDERED)
def test_flink_reads_exactly_the_settings_that_were_asked_for(case: str, reader: Reader, loader: Loader) -> None:
    check(loader.load_files({reader.file: rendered(reader, case).encode()}), reader, case)


@pytest.mark.parametrize(("reader", "case"), ON_A_CLUSTER)
def test_all_is_there_still_when_flinks_client_has_written_it_anew_for_a_cluster(
    case: str, reader: Reader, loader: Loader, tmp_path: Path
) -> None:
    conf, there = put(tmp_path / "conf", {reader.file: rendered(reader, case).encode()}), put(tmp_path / "there", {})
    loader.write_anew(conf, there / reader.file)

    check(loader.load(there), reader, case)


@pytest.mark.parametrize("reader", READERS, ids=str)
def test_flip_108s_arguments_are_lost_when_flinks_client_writes_config_yaml_anew(
    reader: Reader, loader: Loader, tmp_path: Path
) -> None:
    settings = wanted("kubernetes-flip108")
    text = "".join(f"{key}: {value}\n" for key, value in settings.items())
    conf, there = put(tmp_path / "conf", {reader.file: text.encode()}), put(tmp_path / "there", {})

    assert loader.write_anew(conf, there / reader.file).settings == settings
    lost = set() if reader.file == FLAT else {_ARGS}
    assert loader.load(there).settings == {key: value for key, value in settings.items() if key not in lost}


@pytest.mark.parametrize("case", ["kubernetes", "several-resources"])
def test_flink_makes_the_resources_of_a_flink_deployments_texts(case: str, reader: Reader, loader: Loader) -> None:
    version = "1.18.1" if reader.file == FLAT else reader.version
    deployment = yaml.safe_load((GOLDEN / version / case / "flink-deployment.yaml").read_text())
    loaded = loader.load_settings(deployment["spec"]["flinkConfiguration"])

    assert (loaded.error, loaded.log) == (None, ())
    assert (loaded.settings, loaded.resources) == (wanted(case), amounts(case))


def check(loaded: Loaded, reader: Reader, case: str) -> None:
    """Exactly the settings of the case, and its resources."""
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
