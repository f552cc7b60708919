"""What is wrong with a TaskManager's settings of external resources, where Flink itself warns at most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os.path import basename

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf_names as names_of
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import FILES, readable
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    MEANT,
    MISTAKEN,
    NAMES,
    is_served,
    owned_keys,
    told,
)

Settings = Mapping[str, str]
_DEFAULT_NAME = "gpu"  # what the script goes by without --resource
_NUMBER = re.compile(r"[+-]?[0-9]+")
_SCRIPT_KEY = re.compile(r"external-resource\.(.+)\.param\.discovery-script(?:\.path)?")


@dataclass(frozen=True)
class Place:
    """Where the settings count: the ``path`` of the file, the names of others beside it, and who runs there.

    ``version`` of Flink and ``has_gpu_plugin`` may be unknown: empty, and None.
    """

    path: str
    other_files: list[str]
    version: str
    has_gpu_plugin: bool | None
    isolated: bool


def problems(settings: Settings, listed: list[str], wanted: Settings, place: Place) -> list[str]:
    """What keeps TaskManagers from GPUs, a sentence each with its mend; ``settings`` as Flink reads them."""
    found = [*_unlisted(settings, listed, wanted)]
    for name in _names(wanted):
        found += [*_differing(name, settings, wanted), *_args_problems(name, settings, wanted)]
    for name in _strangers(listed, wanted):
        key, amount = _key(name, "amount"), settings.get(_key(name, "amount"), "0")
        if not _NUMBER.fullmatch(amount):
            found.append(f"{key} is {amount!r}, with which no TaskManager starts; set a number from 1")
    if _of_gpus(wanted) and place.has_gpu_plugin is False:
        found.append(
            "plugins/external-resource-gpu holds no jar, so Flink has no GPU driver; copy it from Flink's distribution"
        )
    return [f"{place.path}: {text}" for text in found]


def warnings(settings: Settings, listed: list[str], wanted: Settings, place: Place) -> list[str]:
    """What else an operator should know."""
    found = [*_other_files(place)]
    if place.has_gpu_plugin is None:
        found.append("no Flink lies above it, so whether it has the GPU plugin is unknown; set flink_gpu_flink_home")
    for name in _names(wanted):
        found += _args_warnings(name, settings, wanted, isolated=place.isolated)
    for name in _strangers(listed, wanted):
        found += _of_stranger(name, settings)
    found += [*_misspelt(settings, listed, wanted), *_left(settings, listed, wanted)]
    return [f"{place.path}: {text}" for text in found]


def overcommitted(wanted: Settings, gpus: int | None, task_managers: int) -> list[str]:
    """A warning if the host has not GPUs enough for a TaskManager, or for all that run; None is an unknown number."""
    asked = sum(int(wanted[_key(name, "amount")]) for name in _of_gpus(wanted))
    if gpus is None or asked * max(task_managers, 1) <= gpus:
        return []
    wish = f"{asked} {'GPU' if asked == 1 else 'GPUs'}"
    if asked > gpus:
        return [f"a TaskManager asks for {wish}, and this host has {gpus}"]
    return [
        f"{task_managers} TaskManagers run here and ask for {wish} each, and this host has {gpus},"
        f" enough for {gpus // asked}"
    ]


def _unlisted(settings: Settings, listed: list[str], wanted: Settings) -> Iterator[str]:
    """Names that Flink doesn't know of."""
    if NAMES not in settings:
        yield f"{NAMES} is missing, so Flink knows of none; play site.yml, or set it to {wanted[NAMES]}"
        return
    for name in _names(wanted):
        if name not in listed:
            yield f"{NAMES} doesn't list {name!r}, so Flink ignores it; play site.yml, or add it to that list"


def _differing(name: str, settings: Settings, wanted: Settings) -> Iterator[str]:
    """Each setting that is not as wanted, but for arguments, of which several spellings mean the same."""
    for key in owned_keys(name):
        if key in wanted and key != _args_key(name) and settings.get(key) != wanted[key]:
            yield _difference(key, settings, wanted)


def _difference(key: str, settings: Settings, wanted: Settings) -> str:
    if key not in settings:
        return f"{key} is missing; set it to {wanted[key]}"
    return f"{key} is {settings[key]!r}; {wanted.get(key, '')!r} is what this host's variables say"


def _args_problems(name: str, settings: Settings, wanted: Settings) -> Iterator[str]:
    """Arguments with which the script fails, or serves another resource."""
    served = [each for each in _names(wanted) if _is_ours(each, wanted)]
    names = told(_words(name, settings))
    if name in _of_gpus(wanted) and _is_mistaken(name, settings):
        yield _mistake(name)
    if name in served and names != [name] and (names or served != [_DEFAULT_NAME]):
        yield _difference(_args_key(name), settings, wanted)


def _args_warnings(name: str, settings: Settings, wanted: Settings, *, isolated: bool) -> Iterator[str]:
    if name not in _of_gpus(wanted) and _args_key(name) not in wanted:
        return  # arguments of another driver are its own
    meant = _meaning(name, settings, wanted)
    if meant != _meaning(name, wanted, wanted) and not any(_args_problems(name, settings, wanted)):
        yield _difference(_args_key(name), settings, wanted)
    if isolated and "--id index" in meant:
        yield (
            f"{name!r} has '--id index' in its arguments, but a confined process counts its own GPUs from 0;"
            " leave --id out, or write --id uuid"
        )


def _meaning(name: str, settings: Settings, wanted: Settings) -> list[str]:
    """The options, each with its value, in an order of their own."""
    text = re.sub(r"(--[^ =]+)=", r"\1 ", _words(name, settings))
    if _is_ours(name, wanted) and not told(text):
        text = f"{text} --resource {_DEFAULT_NAME}"
    return sorted(re.split(" (?=--)", text.strip()))


def _of_stranger(name: str, settings: Settings) -> Iterator[str]:
    """What Flink passes over in a resource that is listed, but not wanted."""
    amount = settings.get(_key(name, "amount"))
    if amount is None or (_NUMBER.fullmatch(amount) and int(amount) < 1):
        state = "missing" if amount is None else repr(amount)
        yield f"{_key(name, 'amount')} is {state}, so Flink ignores {name!r}; set a number from 1, or take the name out"
    elif _is_ours(name, settings):
        yield (
            f"{name!r} calls this script, so each TaskManager takes GPUs for it as well;"
            " take it out, or add it to flink_gpu_extra_resources"
        )
    if _is_gpu(name, settings) and _is_mistaken(name, settings):
        yield _mistake(name)


def _misspelt(settings: Settings, listed: list[str], wanted: Settings) -> Iterator[str]:
    """Drivers called almost as Flink's; one that differs from what is wanted is a problem already."""
    for name in dict.fromkeys(listed):
        key = _key(name, "driver-factory.class")
        driver = settings.get(key, "")
        almost = driver.rpartition(".")[2].lower() == GPU_DRIVER.rpartition(".")[2].lower()
        if almost and driver != GPU_DRIVER and wanted.get(key, driver) == driver:
            yield f"{key} is {driver!r}, which isn't Flink's GPU driver; that is {GPU_DRIVER}"


def _left(settings: Settings, listed: list[str], wanted: Settings) -> Iterator[str]:
    """Resources of this script that nobody lists or wants."""
    names = {matched[1]: None for key in settings if (matched := _SCRIPT_KEY.fullmatch(key))}
    for name in names:
        if name not in (*listed, *_names(wanted)) and _is_ours(name, settings):
            yield (
                f"{NAMES} doesn't list {name!r}, so Flink ignores it, though it would call this script;"
                f" take out what begins with {_key(name, '')}, or add it to flink_gpu_extra_resources"
            )


def _other_files(place: Place) -> Iterator[str]:
    formats = {name: file_format for file_format, name in FILES.items()}
    for name in place.other_files:
        if not place.version:
            yield f"{name} lies beside it, and Flink's version tells which one it reads; set flink_gpu_flink_version"
        elif formats.get(name) in readable(place.version):
            yield f"{name} beside it is not read while {basename(place.path)} exists; remove one of them"
        else:
            yield f"{name} beside it is not read by Flink {place.version}; remove it"


def _names(wanted: Settings) -> list[str]:
    return wanted[NAMES].split(";")


def _strangers(listed: list[str], wanted: Settings) -> list[str]:
    """Those listed that nobody wants; what Flink takes for one odd name is told of by who reads the file."""
    return [name for name in dict.fromkeys(listed) if name not in (*_names(wanted), *names_of.odd(listed))]


def _of_gpus(wanted: Settings) -> list[str]:
    """The resources that are GPUs, as far as their driver tells."""
    return [name for name in _names(wanted) if _is_gpu(name, wanted)]


def _is_gpu(name: str, settings: Settings) -> bool:
    return settings.get(_key(name, "driver-factory.class")) == GPU_DRIVER


def _is_ours(name: str, settings: Settings) -> bool:
    """Whether the driver is told to call our script, by a released Flink's key or by FLIP-108's."""
    key = _key(name, "param.discovery-script")
    script = settings.get(f"{key}.path") or settings.get(key)
    return bool(script) and is_served(settings.get(_key(name, "driver-factory.class"), ""), script)


def _is_mistaken(name: str, settings: Settings) -> bool:
    return MISTAKEN in _words(name, settings).split(" ")


def _mistake(name: str) -> str:
    return f"{_args_key(name)} holds {MISTAKEN}, which means nothing; {MEANT} is the option"


def _words(name: str, settings: Settings) -> str:
    """The arguments with one blank between them; Flink splits them at any."""
    return " ".join(settings.get(_args_key(name), "").split())


def _args_key(name: str) -> str:
    return _key(name, "param.discovery-script.args")


def _key(name: str, key: str) -> str:
    return f"external-resource.{name}.{key}"
