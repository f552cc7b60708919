"""What is wrong with a TaskManager's settings of external resources, where Flink itself warns at most."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import GPU_DRIVER, NAMES

_PREFIX = "external-resource"
# Flink's documentation shows an option that its own script ignores.
_MISTAKEN, _MEANT = "--enable-coordination", "--enable-coordination-mode"


@dataclass(frozen=True)
class Place:
    """Where the settings count: which ``file`` was read, what lies beside it, and who runs there.

    ``version`` of Flink, ``has_gpu_plugin`` and the number of ``gpus`` may be unknown: empty, and None.
    """

    file: str
    other_file: str
    version: str
    has_gpu_plugin: bool | None
    isolated: bool
    gpus: int | None
    task_managers: int


def problems(settings: Mapping[str, str], listed: list[str], wanted: Mapping[str, str], place: Place) -> list[str]:
    """What keeps TaskManagers from GPUs, a sentence each with its mend; ``settings`` as Flink reads them."""
    found: list[str] = []
    for name in wanted[NAMES].split(";"):
        if name not in listed:
            found.append(f"{NAMES} doesn't list {name!r}, so Flink ignores it; add it, behind a ';'")
        found += _of_resource(name, settings, wanted)
    if any(value == GPU_DRIVER for value in wanted.values()) and place.has_gpu_plugin is False:
        found.append(
            "plugins/external-resource-gpu holds no jar, so Flink has no GPU driver; copy it from Flink's distribution"
        )
    return [f"{place.file}: {text}" for text in found]


def warnings(settings: Mapping[str, str], wanted: Mapping[str, str], place: Place) -> list[str]:
    """What else an operator should know."""
    found = [*_other_file(place)]
    if place.has_gpu_plugin is None:
        found.append("no Flink lies above it, so whether it has the GPU plugin is unknown; set flink_gpu_flink_home")
    for name in wanted[NAMES].split(";"):
        words = _args(name, settings).split()
        if place.isolated and _says_index(words):
            found.append(
                f"{name!r} has '--id index' in its arguments, but a confined process counts its own GPUs from 0;"
                " leave --id out, or write --id uuid"
            )
    asked = sum(_amount(name, settings) for name in _of_gpus(wanted))
    if place.gpus is not None and asked * place.task_managers > place.gpus:
        found.append(
            f"{place.task_managers} TaskManagers run here and ask for {asked} GPUs each, of {place.gpus}; the last ones"
            " get none"
        )
    return [f"{place.file}: {text}" for text in found]


def _of_resource(name: str, settings: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """Each setting that is not as wanted."""
    prefix = f"{_PREFIX}.{name}."
    for key in (key for key in wanted if key.startswith(prefix)):
        if key not in settings:
            yield f"{key} is missing; set it to {wanted[key]}"
        elif settings[key] != wanted[key] and not _is_mistaken(key, settings[key]):
            yield f"{key} is {settings[key]!r}; {wanted[key]!r} is what this host's variables say"
        elif settings[key] != wanted[key]:
            yield f"{key} holds {_MISTAKEN}, which means nothing; {_MEANT} is the option"


def _is_mistaken(key: str, value: str) -> bool:
    return key.endswith(".args") and _MISTAKEN in value.split()


def _of_gpus(wanted: Mapping[str, str]) -> list[str]:
    """The resources that are GPUs, as far as their driver tells."""
    names = wanted[NAMES].split(";")
    return [name for name in names if wanted[f"{_PREFIX}.{name}.driver-factory.class"] == GPU_DRIVER]


def _other_file(place: Place) -> Iterator[str]:
    if not place.other_file:
        return
    if place.version.startswith(("1.19", "1.20")) and place.file == "flink-conf.yaml":
        yield f"{place.other_file} beside it is not read while this file exists; remove one of them"
    else:
        yield f"{place.other_file} beside it is not read by Flink {place.version or 'of this kind'}; remove it"


def _args(name: str, settings: Mapping[str, str]) -> str:
    return settings.get(f"{_PREFIX}.{name}.param.discovery-script.args", "")


def _says_index(words: list[str]) -> bool:
    return "--id=index" in words or any(pair == ("--id", "index") for pair in zip(words, words[1:], strict=False))


def _amount(name: str, settings: Mapping[str, str]) -> int:
    text = settings.get(f"{_PREFIX}.{name}.amount", "")
    return int(text) if text.isascii() and text.isdigit() else 0
