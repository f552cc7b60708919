"""The settings of external resources that are ours to write, as flat keys, for one deployment of Flink."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

NAMES = "external-resources"
GPU_DRIVER = "org.apache.flink.externalresource.gpu.GPUDriverFactory"
SCRIPT = "/usr/local/bin/flink-gpu-discovery"
# Flink's documentation shows an option that its own script ignores, and ours refuses.
MISTAKEN, MEANT = "--enable-coordination", "--enable-coordination-mode"
_PREFIX = "external-resource"
_AMOUNT = "amount"
_DRIVER = "driver-factory.class"
_PATH = {"released": "param.discovery-script.path", "flip108": "param.discovery-script"}
_ARGS = "param.discovery-script.args"
_CONFIG_KEY = {"yarn": "yarn.config-key", "kubernetes": "kubernetes.config-key"}
_DEVICE = {
    ("yarn", "nvidia"): "yarn.io/gpu",
    ("yarn", "amd"): "yarn.io/gpu",
    ("kubernetes", "nvidia"): "nvidia.com/gpu",
    ("kubernetes", "amd"): "amd.com/gpu",
}
DEPLOYMENTS = ("standalone", *_CONFIG_KEY)
VENDORS = ("nvidia", "amd")
_OF_THE_DRIVER = (*_PATH.values(), _ARGS)
_OWNED = (_AMOUNT, _DRIVER, *_OF_THE_DRIVER, *_CONFIG_KEY.values())
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*", re.ASCII)
_CHARACTERS = "printable ASCII without quotes, '#' and '\\'"  # the flat file cuts off what is behind a '#'
_WORDS = re.compile(r"(?!.*[\"'#\\])[!-~]+( +[!-~]+)*")
_RESOURCE_OPTION = re.compile(r"(?:^| )--resource(?:=| +|$)([^ ]*)")
_LONGEST = 4096


class SettingsError(ValueError):
    """A value that Flink can't carry, and the mend."""


@dataclass(frozen=True)
class Resource:
    """An external resource of each TaskManager; what is None follows from the others.

    ``args`` are those of the script; ours is told ``--resource`` first, without which two resources would get the same
    GPUs. ``config_key`` is the device's name on YARN or Kubernetes.
    """

    name: str
    amount: int
    driver_class: str = GPU_DRIVER
    script: str | None = None
    args: str = ""
    config_key: str | None = None

    def __post_init__(self) -> None:
        """Refuse what Flink can't carry."""
        for value, holds, allowed in (
            (self.name, _is_name(self.name), "a name of 1 to 64 letters, digits, '.', '_' and '-', not 'none'"),
            (self.amount, self.amount > 0, "a number from 1"),
            (self.driver_class, bool(_CLASS.fullmatch(self.driver_class)), "a Java class with its package"),
            (
                self.script,
                not self.script or _is_word(self.script),
                f"a path of up to {_LONGEST} characters, {_CHARACTERS}, without blanks",
            ),
            (self.config_key, not self.config_key or _is_word(self.config_key), "a name such as nvidia.com/gpu"),
            (self.args, _are_words(self.script_args), f"up to {_LONGEST} characters of {_CHARACTERS}"),
            (self.args, bool(self.script_path) or not self.args, "no arguments, since no script takes them"),
            (
                self.args,
                self.driver_class != GPU_DRIVER or MISTAKEN not in self.args.split(),
                f"{MEANT}, since {MISTAKEN} means nothing",
            ),
            (
                self.args,
                not self._is_ours or told(self.script_args) == [self.name],
                f"no --resource, or --resource {self.name}",
            ),
        ):
            if not holds:
                raise SettingsError(f"external resource {self.name!r} has {value!r}; allowed: {allowed}")

    @property
    def script_path(self) -> str:
        """What the driver starts; only Flink's GPU driver has one by default."""
        if self.script is None:
            return SCRIPT if self.driver_class == GPU_DRIVER else ""
        return self.script

    @property
    def script_args(self) -> str:
        """What the script is called with behind the amount."""
        return f"--resource {self.name} {self.args}".rstrip() if self._is_ours and not told(self.args) else self.args

    @property
    def _is_ours(self) -> bool:
        return is_served(self.driver_class, self.script)


def is_served(driver_class: str, script: str | None) -> bool:
    """Whether the driver asks our script."""
    return driver_class == GPU_DRIVER and PurePosixPath(script or SCRIPT).name == PurePosixPath(SCRIPT).name


def told(args: str) -> list[str]:
    """The names behind ``--resource``."""
    return [found[1] or "" for found in _RESOURCE_OPTION.finditer(args)]


def wanted_settings(
    resources: Iterable[Resource], *, deployment: str = "standalone", vendor: str = "nvidia", protocol: str = "released"
) -> dict[str, str]:
    """Every setting of the resources, in the order to write them, as ``flink-conf.yaml`` would hold them."""
    resources = list(resources)
    for value, allowed in ((deployment, DEPLOYMENTS), (vendor, VENDORS), (protocol, tuple(_PATH))):
        if value not in allowed:
            raise SettingsError(f"got {value!r}; allowed: {', '.join(allowed)}")
    names = [resource.name for resource in resources]
    if not names or len(set(names)) < len(names):
        raise SettingsError(f"external resources are {names!r}; allowed: at least one, and each name once")
    _refuse_shared_devices({resource.name: _device(resource, deployment, vendor) for resource in resources})
    wanted = {NAMES: ";".join(names)}
    for resource in resources:
        settings = _settings_of(resource, deployment, vendor, protocol)
        wanted.update({f"{_PREFIX}.{resource.name}.{key}": value for key, value in settings if value})
    return wanted


def _settings_of(resource: Resource, deployment: str, vendor: str, protocol: str) -> list[tuple[str, str]]:
    return [
        (_AMOUNT, str(resource.amount)),
        (_DRIVER, resource.driver_class),
        (_PATH[protocol], resource.script_path),
        (_ARGS, resource.script_args),
        *([(_CONFIG_KEY[deployment], _device(resource, deployment, vendor))] if deployment in _CONFIG_KEY else []),
    ]


def _device(resource: Resource, deployment: str, vendor: str) -> str:
    """What the resource is called on YARN or Kubernetes; empty elsewhere, and where nobody says."""
    if deployment not in _CONFIG_KEY:
        return ""
    by_default = _DEVICE[deployment, vendor] if resource.driver_class == GPU_DRIVER else ""
    return resource.config_key or by_default


def _refuse_shared_devices(devices: Mapping[str, str]) -> None:
    """Of resources with one config-key Flink asks for the last alone (``ExternalResourceUtils``)."""
    for device in filter(None, devices.values()):
        names = [name for name, other in devices.items() if other == device]
        if len(names) > 1:
            raise SettingsError(
                f"external resources {', '.join(names)} all have the config-key {device!r}, and Flink would ask for the"
                " last one's amount alone; allowed: one resource of each, or another config_key"
            )


def owned_keys(name: str) -> list[str]:
    """Every key of the resource that is ours to write, or to take out."""
    return [f"{_PREFIX}.{name}.{key}" for key in _OWNED]


def superfluous_keys(wanted: Mapping[str, str]) -> list[str]:
    """Keys that must not stand beside the wanted ones; another driver's parameters are its own."""
    keys = []
    for name in wanted[NAMES].split(";"):
        foreign = wanted[f"{_PREFIX}.{name}.{_DRIVER}"] != GPU_DRIVER
        parameters = [f"{_PREFIX}.{name}.{key}" for key in _OF_THE_DRIVER] if foreign else []
        keys += [key for key in owned_keys(name) if key not in wanted and key not in parameters]
    return keys


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text)) and text not in {"none", "-"}


def _is_word(text: str) -> bool:
    return _are_words(text) and bool(text) and " " not in text


def _are_words(text: str) -> bool:
    return not text or (bool(_WORDS.fullmatch(text)) and len(text) <= _LONGEST)
