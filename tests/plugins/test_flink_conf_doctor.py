"""What Flink would pass over in silence is named, with its mend."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_doctor import Place, problems, warnings
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

WANTED = wanted_settings([Resource("gpu", 2)])
PLACE = Place("config.yaml", "", "2.3.0", has_gpu_plugin=True, isolated=True, gpus=4, task_managers=2)
AMOUNT, DRIVER, PATH, ARGS = (
    f"external-resource.gpu.{key}"
    for key in ("amount", "driver-factory.class", "param.discovery-script.path", "param.discovery-script.args")
)


def found(changed: dict[str, str | None] | None = None, listed: tuple[str, ...] = ("gpu",)) -> list[str]:
    settings = {key: value for key, value in {**WANTED, **(changed or {})}.items() if value is not None}
    return problems(settings, list(listed), WANTED, PLACE)


def test_settings_as_wanted_are_sound() -> None:
    assert found() == []
    assert warnings(WANTED, WANTED, PLACE) == []


def test_a_name_that_is_not_listed_is_named() -> None:
    (problem,) = found(listed=("fpga",))
    assert problem == "config.yaml: external-resources doesn't list 'gpu', so Flink ignores it; add it, behind a ';'"


@pytest.mark.parametrize("key", [AMOUNT, DRIVER, PATH, ARGS])
def test_a_setting_that_is_missing_or_another_is_named(key: str) -> None:
    assert found({key: None}) == [f"config.yaml: {key} is missing; set it to {WANTED[key]}"]
    assert found({key: "x"}) == [f"config.yaml: {key} is 'x'; {WANTED[key]!r} is what this host's variables say"]


def test_the_mistake_of_flinks_documentation_is_known() -> None:
    (problem,) = found({ARGS: "--enable-coordination --resource gpu"})
    assert problem.endswith(
        "holds --enable-coordination, which means nothing; --enable-coordination-mode is the option"
    )


def test_a_missing_plugin_is_a_problem_where_a_gpu_driver_is_wanted() -> None:
    (problem,) = problems(WANTED, ["gpu"], WANTED, replace(PLACE, has_gpu_plugin=False))
    assert "plugins/external-resource-gpu holds no jar" in problem
    other = wanted_settings([Resource("fpga", 1, driver_class="org.example.Driver")])
    assert problems(other, ["fpga"], other, replace(PLACE, has_gpu_plugin=False)) == []


@pytest.mark.parametrize("args", ["--resource gpu --id index", "--id=index --resource gpu"])
def test_indexes_in_a_confinement_are_warned_of(args: str) -> None:
    settings = {**WANTED, ARGS: args}
    (warning,) = warnings(settings, WANTED, PLACE)
    assert "counts its own GPUs from 0" in warning
    assert warnings(settings, WANTED, replace(PLACE, isolated=False)) == []


@pytest.mark.parametrize(
    ("version", "file", "other"),
    [("1.20.5", "flink-conf.yaml", "config.yaml"), ("2.3.0", "config.yaml", "flink-conf.yaml")],
)
def test_a_second_file_is_told_of(version: str, file: str, other: str) -> None:
    (warning,) = warnings(WANTED, WANTED, replace(PLACE, version=version, file=file, other_file=other))
    assert warning.startswith(f"{file}: {other} beside it is not read")


def test_more_than_the_host_has_is_warned_of_and_an_unknown_number_is_not() -> None:
    (warning,) = warnings(WANTED, WANTED, replace(PLACE, task_managers=3))
    assert warning == "config.yaml: 3 TaskManagers run here and ask for 2 GPUs each, of 4; the last ones get none"
    assert warnings(WANTED, WANTED, replace(PLACE, task_managers=3, gpus=None)) == []
