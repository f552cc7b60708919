"""The settings of external resources follow from a few values, and what Flink can't carry is refused."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    SCRIPT,
    Resource,
    SettingsError,
    wanted_settings,
)


def test_a_gpu_gets_all_settings_of_released_flink() -> None:
    assert list(wanted_settings([Resource("gpu", 2, args="--wait 3")]).items()) == [
        ("external-resources", "gpu"),
        ("external-resource.gpu.amount", "2"),
        ("external-resource.gpu.driver-factory.class", GPU_DRIVER),
        ("external-resource.gpu.param.discovery-script.path", SCRIPT),
        ("external-resource.gpu.param.discovery-script.args", "--resource gpu --wait 3"),
    ]


def test_flip_108_names_the_script_itself() -> None:
    wanted = wanted_settings([Resource("gpu", 1)], protocol="flip108")
    assert wanted["external-resource.gpu.param.discovery-script"] == SCRIPT
    assert "external-resource.gpu.param.discovery-script.path" not in wanted


@pytest.mark.parametrize(
    ("deployment", "vendor", "key", "value"),
    [
        ("yarn", "nvidia", "yarn", "yarn.io/gpu"),
        ("yarn", "amd", "yarn", "yarn.io/gpu"),
        ("kubernetes", "nvidia", "kubernetes", "nvidia.com/gpu"),
        ("kubernetes", "amd", "kubernetes", "amd.com/gpu"),
    ],
)
def test_only_the_deployment_at_hand_is_told_the_device(deployment: str, vendor: str, key: str, value: str) -> None:
    wanted = wanted_settings([Resource("gpu", 1)], deployment=deployment, vendor=vendor)
    assert {k: v for k, v in wanted.items() if "config-key" in k} == {f"external-resource.gpu.{key}.config-key": value}


def test_another_driver_gets_neither_script_nor_arguments_nor_a_gpus_device() -> None:
    fpga = Resource("fpga", 1, driver_class="org.x.Fpga")
    wanted = wanted_settings([Resource("gpu", 1), fpga], deployment="kubernetes")
    assert wanted["external-resources"] == "gpu;fpga"
    assert [key for key in wanted if "fpga" in key] == [
        "external-resource.fpga.amount",
        "external-resource.fpga.driver-factory.class",
    ]


def test_another_script_is_not_told_the_resource() -> None:
    assert not any("args" in key for key in wanted_settings([Resource("gpu", 1, script="/x/nvidia-gpu-discovery.sh")]))


@pytest.mark.parametrize("args", ["--resource gpu --wait 3", "--wait 3 --resource=gpu"])
def test_a_resource_that_is_told_already_is_not_told_twice(args: str) -> None:
    assert wanted_settings([Resource("gpu", 1, args=args)])["external-resource.gpu.param.discovery-script.args"] == args


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"name": "a;b"}, "'a;b'"),
        ({"name": "none"}, "not 'none'"),
        ({"name": "x" * 65}, "1 to 64"),
        ({"name": "gpu\n"}, "letters"),
        ({"amount": 0}, "a number from 1"),
        ({"driver_class": "org x"}, "Java class"),
        ({"script": "/a b"}, "without blanks"),
        ({"script": "/a'b"}, "without quotes"),
        ({"args": '--owner "a b"'}, "without quotes"),
        ({"args": "--a\n--b"}, "printable ASCII"),
        ({"args": "--owner Größe"}, "printable ASCII"),
        ({"args": "x" * 4090}, "4096"),
        ({"args": "--resource other"}, "--resource gpu"),
        ({"args": "--resource gpu --resource"}, "--resource gpu"),
        ({"args": "--x", "driver_class": "org.x.Fpga"}, "no script"),
        ({"args": "--wait 3 --enable-coordination"}, "allowed: --enable-coordination-mode,"),
        ({"args": "--enable-coordination", "script": "nvidia-gpu-discovery.sh"}, "--enable-coordination-mode"),
        ({"config_key": "a b"}, "nvidia.com/gpu"),
    ],
)
def test_what_flink_cannot_carry_is_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match="allowed: ") as caught:
        Resource(**{"name": "gpu", "amount": 1, **fields})
    assert says in str(caught.value)


def test_the_options_whole_name_and_another_drivers_arguments_are_taken() -> None:
    Resource("gpu", 1, args="--enable-coordination-mode")
    Resource("fpga", 1, driver_class="org.x.Fpga", script="/x", args="--enable-coordination")


@pytest.mark.parametrize("options", [{"deployment": "mesos"}, {"vendor": "intel"}, {"protocol": "new"}])
def test_unknown_choices_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(SettingsError, match="allowed: "):
        wanted_settings([Resource("gpu", 1)], **options)


def test_a_name_stands_once() -> None:
    with pytest.raises(SettingsError, match="each name once"):
        wanted_settings([Resource("gpu", 1), Resource("gpu", 2)])


@pytest.mark.parametrize("deployment", ["yarn", "kubernetes"])
def test_two_resources_of_one_device_are_refused_where_flink_would_ask_for_one(deployment: str) -> None:
    twins = [Resource("gpu", 2), Resource("small", 1)]
    with pytest.raises(
        SettingsError, match=r"external resources gpu, small all have the config-key .(yarn\.io|nvidia\.com)/gpu"
    ):
        wanted_settings(twins, deployment=deployment)
    assert wanted_settings(twins)["external-resources"] == "gpu;small"
    apart = [
        twins[0],
        Resource("small", 1, config_key="nvidia.com/mig-1g.5gb"),
        Resource("fpga", 1, "org.example.Fpga"),
    ]
    assert wanted_settings(apart, deployment=deployment)["external-resources"] == "gpu;small;fpga"
