"""What Flink would pass over in silence is named, with its mend."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import read
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_doctor import (
    Place,
    overcommitted,
    problems,
    warnings,
)
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    SCRIPT,
    Resource,
    wanted_settings,
)

WANTED = wanted_settings([Resource("gpu", 2)])
FLIP108 = wanted_settings([Resource("gpu", 2)], protocol="flip108")
TWO = wanted_settings([Resource("gpu", 2), Resource("more", 1)])
FPGA = wanted_settings([Resource("fpga", 4, driver_class="org.example.Driver")])
PLACE = Place("/c/config.yaml", [], "2.3.0", has_gpu_plugin=True, isolated=True)
AMOUNT, DRIVER, PATH, ARGS = (
    f"external-resource.gpu.{key}"
    for key in ("amount", "driver-factory.class", "param.discovery-script.path", "param.discovery-script.args")
)
MISTAKE = (
    "/c/config.yaml: {} holds --enable-coordination, which means nothing; --enable-coordination-mode is the option"
)
README = Path(__file__).parents[2] / "README.md"

Changes = dict[str, "str | None"]


def changed(changes: Changes, wanted: dict[str, str] = WANTED) -> dict[str, str]:
    """The wanted settings with others in their place; None is one that is missing."""
    return {key: value for key, value in {**wanted, **changes}.items() if value is not None}


def found(changes: Changes, *listed: str, wanted: dict[str, str] = WANTED) -> tuple[list[str], list[str]]:
    """Problems and warnings, without the file's name that each begins with."""
    settings, names = changed(changes, wanted), list(listed) or wanted["external-resources"].split(";")
    of_problems, of_warnings = (
        [text.partition("/c/config.yaml: ")[2] for text in judge(settings, names, wanted, PLACE)]
        for judge in (problems, warnings)
    )
    return of_problems, of_warnings


def other(name: str, amount: str | None = "1", driver: str = "org.x.Driver", **keys: str) -> Changes:
    """The settings of a resource that the variables don't want."""
    settings = {"amount": amount, "driver-factory.class": driver, **keys}
    return {f"external-resource.{name}.{key}": value for key, value in settings.items()}


@pytest.mark.parametrize("wanted", [WANTED, FLIP108, TWO, FPGA])
def test_settings_as_wanted_are_sound(wanted: dict[str, str]) -> None:
    assert found({}, wanted=wanted) == ([], [])


def test_the_readmes_example_is_sound() -> None:
    example = re.findall(r"```yaml\n(external-resources:.*?)```", README.read_text(), re.DOTALL)
    reading = read("".join(example).encode(), "config-yaml")
    assert problems(reading.settings, reading.resources, WANTED, PLACE) == []
    assert warnings(reading.settings, reading.resources, WANTED, PLACE) == []


@pytest.mark.parametrize("listed", ["[npu]", "npu", "none"])
def test_a_name_that_is_not_listed_is_named_in_words_for_any_spelling(listed: str) -> None:
    says = "external-resources doesn't list 'gpu', so Flink ignores it; play site.yml, or add it to that list"
    assert found({"external-resources": listed, **other("npu")}, "npu") == ([says], [])


def test_an_empty_file_lacks_the_names_and_each_setting() -> None:
    lacking = problems({}, [], TWO, PLACE)
    assert lacking[0] == (
        "/c/config.yaml: external-resources is missing, so Flink knows of none; play site.yml, or set it to gpu;more"
    )
    assert problems(changed({"external-resources": None}, TWO), [], TWO, PLACE) == lacking[:1]
    assert lacking[1:] == [
        f"/c/config.yaml: {key} is missing; set it to {value}" for key, value in list(TWO.items())[1:]
    ]


def test_an_odd_name_hides_no_other_fault_and_is_told_of_by_who_reads_the_file() -> None:
    for listed in ([], ["npu,gpu"]):
        settings = changed({"external-resources": "npu,gpu", AMOUNT: "3"})
        assert [text.split(";")[0] for text in problems(settings, listed, WANTED, PLACE)] == [
            "/c/config.yaml: external-resources doesn't list 'gpu', so Flink ignores it",
            f"/c/config.yaml: {AMOUNT} is '3'",
        ]
        assert warnings(settings, listed, WANTED, PLACE) == []


@pytest.mark.parametrize("key", [AMOUNT, DRIVER, PATH])
def test_a_setting_that_is_missing_or_another_is_a_problem(key: str) -> None:
    assert found({key: None}) == ([f"{key} is missing; set it to {WANTED[key]}"], [])
    for value in ("x", "--enable-coordination"):
        assert found({key: value}) == ([f"{key} is {value!r}; {WANTED[key]!r} is what this host's variables say"], [])


def test_flip_108s_key_of_the_script_is_compared() -> None:
    key = "external-resource.gpu.param.discovery-script"
    assert found({key: None}, wanted=FLIP108) == ([f"{key} is missing; set it to {SCRIPT}"], [])
    assert found({key: "/x"}, wanted=FLIP108)[0] == [f"{key} is '/x'; {SCRIPT!r} is what this host's variables say"]
    assert found({ARGS: "--resource more"}, wanted=FLIP108)[0] == [
        f"{ARGS} is '--resource more'; '--resource gpu' is what this host's variables say"
    ]


def test_a_name_that_begins_as_another_does_is_told_of_once() -> None:
    wanted = wanted_settings([Resource("gpu", 1), Resource("gpu.x", 1)])
    key = "external-resource.gpu.x.amount"
    assert found({key: None}, wanted=wanted) == ([f"{key} is missing; set it to 1"], [])


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("--wait 3 --id=uuid", "--id uuid --resource gpu --wait=3"),
        ("--wait 3", "--wait \t3  --resource=gpu"),
        ("--wait 3", "--wait 3"),  # gpu is what the script goes by
        ("", None),
    ],
)
def test_arguments_that_mean_the_same_are_no_difference(said: str, meant: str | None) -> None:
    assert found({ARGS: meant}, wanted=wanted_settings([Resource("gpu", 2, args=said)])) == ([], [])


@pytest.mark.parametrize("args", ["--coordinate --check-dead", "--id uuid --resource gpu", "--resource gpu --wait=3"])
def test_arguments_of_another_meaning_are_a_warning(args: str) -> None:
    says = f"{ARGS} is {args!r}; '--resource gpu' is what this host's variables say"
    assert found({ARGS: args}) == ([], [says])


def test_arguments_that_are_missing_are_a_warning() -> None:
    wanted = wanted_settings([Resource("gpu", 2, args="--wait 3")])
    assert found({ARGS: None}, wanted=wanted) == ([], [f"{ARGS} is missing; set it to --resource gpu --wait 3"])


@pytest.mark.parametrize("args", ["--resource other", "--resource gpu --resource=other", "--coordinate --resource"])
def test_another_resource_is_a_problem(args: str) -> None:
    says = f"{ARGS} is {args!r}; '--resource gpu' is what this host's variables say"
    assert found({ARGS: args}) == ([says], [])


@pytest.mark.parametrize(("wanted", "name"), [(TWO, "gpu"), (TWO, "more"), ("npu", "npu")])
def test_no_resource_is_a_problem_where_the_default_is_not_enough(wanted: dict[str, str] | str, name: str) -> None:
    settings = wanted_settings([Resource(wanted, 1)]) if isinstance(wanted, str) else wanted
    key = f"external-resource.{name}.param.discovery-script.args"
    assert found({key: None}, wanted=settings) == ([f"{key} is missing; set it to --resource {name}"], [])


def test_another_script_is_asked_for_no_resource() -> None:
    wanted = wanted_settings([Resource("npu", 2, script="/x.sh"), Resource("gpu", 1)])
    key = "external-resource.npu.param.discovery-script.args"
    assert found({}, wanted=wanted) == ([], [])
    assert found({ARGS: None}, wanted=wanted) == ([], [])
    for args in ("--x", "--resource gpu"):
        assert found({key: args}, wanted=wanted) == ([], [f"{key} is {args!r}; '' is what this host's variables say"])


def test_another_drivers_arguments_are_its_own_unless_the_variables_want_them() -> None:
    key = "external-resource.fpga.param.discovery-script.args"
    assert found({key: "--x --enable-coordination"}, wanted=FPGA) == ([], [])
    wanted = wanted_settings([Resource("fpga", 1, driver_class="org.x.Fpga", script="/x", args="--y")])
    assert found({key: None}, wanted=wanted) == ([], [f"{key} is missing; set it to --y"])
    assert found({key: "--x"}, wanted=wanted) == ([], [f"{key} is '--x'; '--y' is what this host's variables say"])


def test_the_mistake_of_flinks_documentation_is_found_whoever_wants_it() -> None:
    args = "--resource gpu --enable-coordination"
    for wanted in (WANTED, {**WANTED, ARGS: args}, {**WANTED, PATH: "/nvidia-gpu-discovery.sh"}):
        assert problems(changed({ARGS: args}, wanted), ["gpu"], wanted, PLACE) == [MISTAKE.format(ARGS)]
        assert warnings(changed({ARGS: args}, wanted), ["gpu"], wanted, PLACE) == []
    assert len(found({ARGS: "--enable-coordination --resource other"})[0]) == 2
    assert "holds" not in found({ARGS: "--enable-coordination-mode"})[1][0]


def test_the_mistake_is_found_in_what_nobody_wants() -> None:
    key = "external-resource.npu.param.discovery-script.args"
    gpus = other("npu", driver=GPU_DRIVER, **{"param.discovery-script.args": "--enable-coordination"})
    says = MISTAKE.format(key).removeprefix("/c/config.yaml: ")
    assert found(gpus, "gpu", "npu") == ([], [says])
    assert found({**gpus, "external-resource.npu.driver-factory.class": "org.x.Own"}, "gpu", "npu") == ([], [])


@pytest.mark.parametrize(("amount", "shown"), [(None, "missing"), ("0", "'0'"), ("-1", "'-1'")])
def test_a_listed_name_without_an_amount_is_ignored(amount: str | None, shown: str) -> None:
    says = f"external-resource.npu.amount is {shown}, so Flink ignores 'npu'; set a number from 1, or take the name out"
    assert found(other("npu", amount), "gpu", "npu", "npu") == ([], [says])


@pytest.mark.parametrize("amount", ["two", "²", ""])
def test_no_taskmanager_starts_with_an_amount_that_is_no_number(amount: str) -> None:
    says = f"external-resource.npu.amount is {amount!r}, with which no TaskManager starts; set a number from 1"
    assert found(other("npu", amount), "gpu", "npu") == ([says], [])


@pytest.mark.parametrize("amount", ["1", "+2", "010"])
def test_a_number_is_read_as_flink_reads_it(amount: str) -> None:
    assert found(other("npu", amount), "gpu", "npu") == ([], [])


@pytest.mark.parametrize("key", ["param.discovery-script.path", "param.discovery-script"])
def test_a_resource_that_takes_gpus_unasked_is_warned_of(key: str) -> None:
    ours = other("old.x", driver=GPU_DRIVER, **{key: "/opt/flink-gpu-discovery"})
    assert found(ours, "gpu", "old.x") == (
        [],
        [
            "'old.x' calls this script, so each TaskManager takes GPUs for it as well;"
            " take it out, or add it to flink_gpu_extra_resources"
        ],
    )
    assert found(ours, "gpu") == (
        [],
        [
            "external-resources doesn't list 'old.x', so Flink ignores it, though it would call this script;"
            " take out what begins with external-resource.old.x., or add it to flink_gpu_extra_resources"
        ],
    )


@pytest.mark.parametrize(
    ("driver", "path"), [(GPU_DRIVER, "/x.sh"), (GPU_DRIVER, ""), ("org.x.Own", SCRIPT), ("", SCRIPT)]
)
def test_a_resource_of_others_is_left_alone(driver: str, path: str) -> None:
    theirs = other("old", driver=driver, **{"param.discovery-script.path": path})
    assert found(theirs, "gpu", "old") == ([], [])
    assert found(theirs, "gpu") == ([], [])


@pytest.mark.parametrize("driver", ["org.apache.flink.externalresource.gpu.GpuDriverFactory", "gpudriverfactory"])
def test_a_misspelt_driver_is_warned_of(driver: str) -> None:
    says = f"{{}} is {driver!r}, which isn't Flink's GPU driver; that is {GPU_DRIVER}"
    key = "external-resource.npu.driver-factory.class"
    assert found(other("npu", driver=driver), "gpu", "npu") == ([], [says.format(key)])
    itself = wanted_settings([Resource("npu", 1, driver_class=driver)])
    assert found({}, wanted=itself) == ([], [says.format(key)])
    assert found({DRIVER: driver}) == (
        [f"{DRIVER} is {driver!r}; {GPU_DRIVER!r} is what this host's variables say"],
        [],
    )


def test_a_missing_plugin_is_a_problem_where_a_gpu_driver_is_wanted() -> None:
    without = replace(PLACE, has_gpu_plugin=False)
    (problem,) = problems(WANTED, ["gpu"], WANTED, without)
    assert problem.startswith("/c/config.yaml: plugins/external-resource-gpu holds no jar")
    assert problems(FPGA, ["fpga"], FPGA, without) == []


def test_an_unknown_plugin_is_no_problem_but_told_of() -> None:
    unknown = replace(PLACE, has_gpu_plugin=None)
    assert problems(WANTED, ["gpu"], WANTED, unknown) == []
    assert warnings(WANTED, ["gpu"], WANTED, unknown) == [
        "/c/config.yaml: no Flink lies above it, so whether it has the GPU plugin is unknown; set flink_gpu_flink_home"
    ]


@pytest.mark.parametrize("args", ["--resource gpu --id index", "--id=index --resource gpu"])
def test_indexes_in_a_confinement_are_warned_of(args: str) -> None:
    wanted = {**WANTED, ARGS: args}
    (warning,) = warnings(wanted, ["gpu"], wanted, PLACE)
    assert "counts its own GPUs from 0" in warning
    assert warnings(wanted, ["gpu"], wanted, replace(PLACE, isolated=False)) == []


NOT_AT_ALL, NOT_WHILE = "is not read by Flink {}; remove it", "is not read while {} exists; remove one of them"


@pytest.mark.parametrize(
    ("version", "file", "beside", "says"),
    [
        ("1.18.1", "flink-conf.yaml", "config.yaml", NOT_AT_ALL),
        ("1.19.3", "flink-conf.yaml", "config.yaml", NOT_WHILE),
        ("1.20", "flink-conf.yaml", "config.yaml", NOT_WHILE),
        ("2.3.0", "config.yaml", "flink-conf.yaml", NOT_AT_ALL),
        ("10.0", "config.yaml", "flink-conf.yaml", NOT_AT_ALL),
        ("", "config.yaml", "flink-conf.yaml", "tells which one it reads; set flink_gpu_flink_version"),
    ],
)
def test_a_second_file_is_told_of(version: str, file: str, beside: str, says: str) -> None:
    place = replace(PLACE, version=version, path=f"/c/{file}", other_files=[beside])
    (warning,) = warnings(WANTED, ["gpu"], WANTED, place)
    assert warning.startswith(f"/c/{file}: {beside} ")
    assert warning.endswith(says.format(file if "exists" in says else version))


@pytest.mark.parametrize(
    ("gpus", "task_managers", "says"),
    [
        (4, 3, "3 TaskManagers run here and ask for 2 GPUs each, and this host has 4, enough for 2"),
        (3, 2, "2 TaskManagers run here and ask for 2 GPUs each, and this host has 3, enough for 1"),
        (2, 2, "2 TaskManagers run here and ask for 2 GPUs each, and this host has 2, enough for 1"),
        (1, 0, "a TaskManager asks for 2 GPUs, and this host has 1"),
        (1, 1, "a TaskManager asks for 2 GPUs, and this host has 1"),
        (0, 3, "a TaskManager asks for 2 GPUs, and this host has 0"),
    ],
)
def test_more_than_the_host_has_is_warned_of(gpus: int, task_managers: int, says: str) -> None:
    assert overcommitted({**WANTED, **FPGA, "external-resources": "fpga;gpu"}, gpus, task_managers) == [says]


def test_one_gpu_is_one() -> None:
    assert overcommitted(wanted_settings([Resource("gpu", 1)]), 0, 1) == [
        "a TaskManager asks for 1 GPU, and this host has 0"
    ]


def test_all_resources_that_are_gpus_count() -> None:
    assert overcommitted(TWO, 2, 0) == ["a TaskManager asks for 3 GPUs, and this host has 2"]


@pytest.mark.parametrize(("gpus", "task_managers"), [(4, 2), (2, 1), (2, 0), (None, 9)])
def test_enough_and_an_unknown_number_are_no_warning(gpus: int | None, task_managers: int) -> None:
    assert overcommitted(WANTED, gpus, task_managers) == []


def test_what_are_no_gpus_needs_none() -> None:
    assert overcommitted(FPGA, 0, 3) == []
