"""One file through the life of a host: resources come, change their protocol and deployment, get new names, and go."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import GPU_DRIVER, Resource, wanted_settings

from .answers import GPU
from .loader import Loader
from .merging import FORMATS, check_merged, check_removed
from .readers import FLAT, YAML, Reader

pytestmark = pytest.mark.flink

SCRIPT, ARGS = "/usr/local/bin/flink-gpu-discovery", "--resource gpu"
RELEASED = {"param.discovery-script.path": SCRIPT, "param.discovery-script.args": ARGS}
FLIP_108 = {"param.discovery-script": SCRIPT, "param.discovery-script.args": ARGS}
# Another team's FPGA, and a name without settings, beside settings of Flink's own.
OTHERS = {
    FLAT: b"""\
taskmanager.numberOfTaskSlots: 2 # two
external-resources: fpga; spare
external-resource.fpga.amount: 1
external-resource.fpga.driver-factory.class: org.x.Fpga
external-resource.fpga.param.discovery-script.path: /opt/fpga
external-resource.fpga.param.image: s3://x/y
state.backend.type: rocksdb
""",
    YAML: b"""\
taskmanager:
  numberOfTaskSlots: 2 # two
external-resources:
  - fpga  # theirs
  - spare
external-resource:
  # of the other team
  fpga:
    amount: 1
    driver-factory: {class: org.x.Fpga}
    param:
      discovery-script.path: /opt/fpga
      image: s3://x/y
state.backend.type: rocksdb
""",
}


def gpu(**choices: str) -> dict[str, str]:
    return wanted_settings([Resource("gpu", 2)], **choices)


def of_gpu(settings: dict[str, str]) -> dict[str, str]:
    return {key.removeprefix(GPU): value for key, value in settings.items() if key.startswith(GPU)}


@pytest.mark.parametrize(
    ("choices", "settings"),
    [
        ({"protocol": "flip108"}, FLIP_108),
        ({"deployment": "kubernetes"}, {**RELEASED, "kubernetes.config-key": "nvidia.com/gpu"}),
        ({"deployment": "kubernetes", "vendor": "amd"}, {**RELEASED, "kubernetes.config-key": "amd.com/gpu"}),
        ({"deployment": "yarn"}, {**RELEASED, "yarn.config-key": "yarn.io/gpu"}),
        ({"deployment": "yarn", "protocol": "flip108"}, {**FLIP_108, "yarn.config-key": "yarn.io/gpu"}),
    ],
    ids=str,
)
def test_a_choice_is_made_and_taken_back_without_a_trace(
    choices: dict[str, str], settings: dict[str, str], reader: Reader, loader: Loader
) -> None:
    file_format = FORMATS[reader.file]
    first = flink_conf.merge(OTHERS[reader.file], file_format, gpu())
    chosen = flink_conf.merge(first, file_format, gpu(**choices))
    back = flink_conf.merge(chosen, file_format, gpu())

    loaded = loader.load_files({reader.file: chosen})
    assert of_gpu(loaded.settings) == {"amount": "2", "driver-factory.class": GPU_DRIVER, **settings}
    assert loader.load_files({reader.file: back}).settings == loader.load_files({reader.file: first}).settings
    for content in (first, chosen, back):
        assert flink_conf.remove(content, file_format, ["gpu"]) == OTHERS[reader.file]


def test_a_renamed_resource_leaves_nothing_of_its_old_name(reader: Reader, loader: Loader) -> None:
    file_format, renamed = FORMATS[reader.file], wanted_settings([Resource("accelerator", 2)])
    before = loader.load_files({reader.file: OTHERS[reader.file]})
    old = flink_conf.merge(OTHERS[reader.file], file_format, gpu(deployment="yarn"))
    new = flink_conf.merge(old, file_format, renamed, ["gpu", "accelerator"])

    check_merged(before, loader.load_files({reader.file: new}), renamed)
    assert b"gpu" not in new.replace(b"externalresource.gpu", b"").replace(SCRIPT.encode(), b"")
    assert flink_conf.remove(new, file_format, ["accelerator"]) == OTHERS[reader.file]


def test_names_stand_behind_theirs_in_the_order_given(reader: Reader, loader: Loader) -> None:
    resources = [Resource(name, 1) for name in ("gpu", "fpga", "a100")]
    wanted = wanted_settings(resources)
    merged = flink_conf.merge(OTHERS[reader.file], FORMATS[reader.file], wanted)

    named = loader.load_files({reader.file: merged}).settings["external-resources"]
    assert named == ("fpga; spare;gpu;a100" if reader.file == FLAT else "[fpga, spare, gpu, a100]")
    assert flink_conf.read(merged, FORMATS[reader.file]).resources == ["fpga", "spare", "gpu", "a100"]


def test_a_resource_with_a_driver_of_its_own_keeps_that_drivers_parameters(reader: Reader, loader: Loader) -> None:
    before = loader.load_files({reader.file: OTHERS[reader.file]})
    fpga = Resource("fpga", 3, driver_class="org.x.Fpga", config_key="xilinx.com/fpga")
    wanted = wanted_settings([Resource("gpu", 2), fpga], deployment="kubernetes")
    merged = flink_conf.merge(OTHERS[reader.file], FORMATS[reader.file], wanted)

    after = loader.load_files({reader.file: merged})
    theirs = {key: value for key, value in after.settings.items() if key.startswith("external-resource.fpga.")}
    assert {key.removeprefix("external-resource.fpga."): value for key, value in theirs.items()} == {
        "amount": "3",
        "driver-factory.class": "org.x.Fpga",
        "kubernetes.config-key": "xilinx.com/fpga",
        "param.discovery-script.path": "/opt/fpga",
        "param.image": "s3://x/y",
    }
    check_removed(before, loader.load_files({reader.file: cleaned(merged, reader)}), ["gpu"])


def cleaned(merged: bytes, reader: Reader) -> bytes:
    """Without the GPUs, and with the FPGA as it was."""
    fpga = wanted_settings([Resource("fpga", 1, driver_class="org.x.Fpga")])
    return flink_conf.merge(merged, FORMATS[reader.file], fpga, ["gpu"])
