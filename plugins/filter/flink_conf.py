"""Filters over Flink's configuration files, as ``slurp`` brings them and ``copy`` takes them: in base64.

What they do is in ``plugin_utils/flink_conf.py`` and ``flink_settings.py``.
"""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Callable
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_choice import AUTO, ChoiceError, choose
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    Resource,
    SettingsError,
    is_served,
    wanted_settings,
)

_FIELDS = ("name", "amount", "driver_class", "script", "args", "config_key")


def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Say what is wrong in one line, without a stack trace."""

    @functools.wraps(function)
    def filter_function(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (FlinkConfError, ChoiceError, SettingsError, binascii.Error) as error:
            raise AnsibleFilterError(f"flinkops.gpu.{function.__name__}: {error}") from error

    return filter_function


@_refusing
def flink_gpu_settings(
    resources: list[dict[str, Any]], deployment: str = "standalone", vendor: str = "nvidia", protocol: str = "released"
) -> dict[str, str]:
    """The settings to write for these external resources."""
    made = [_resource(resource) for resource in resources]
    return wanted_settings(made, deployment=deployment, vendor=vendor, protocol=protocol)


def flink_gpu_settings_fault(resources: list[dict[str, Any]]) -> str:
    """What in these external resources Flink can't carry; empty if it can."""
    for resource in resources:
        try:
            _resource(resource)
        except SettingsError as error:
            return str(error)
    return ""


def flink_gpu_served(resources: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those of the external resources that our script serves; the others are not of its GPUs."""
    return [each for each in resources if is_served(each.get("driver_class") or GPU_DRIVER, each.get("script") or None)]


@_refusing
def flink_conf_merge(content: str, format: str, wanted: dict[str, str], drop_names: list[str] | None = None) -> str:  # noqa: A002
    """The file with the wanted settings."""
    return _encoded(flink_conf.merge(_decoded(content), format, wanted, drop_names or []))


@_refusing
def flink_conf_remove(content: str, format: str, names: list[str]) -> str:  # noqa: A002
    """The file without our settings of these resources."""
    return _encoded(flink_conf.remove(_decoded(content), format, names))


@_refusing
def flink_conf_read(content: str, format: str) -> dict[str, Any]:  # noqa: A002
    """The file as Flink reads it; a file that Flink refuses is an answer, too."""
    answer: dict[str, Any] = {"settings": {}, "resources": [], "warnings": [], "error": None}
    try:
        reading = flink_conf.read(_decoded(content), format)
    except FlinkConfError as error:
        return {**answer, "error": {"line": error.line, "column": error.column, "message": str(error)}}
    return {**answer, "settings": reading.settings, "resources": reading.resources, "warnings": reading.warnings}


@_refusing
def flink_conf_choice(present: list[str], version: str, format: str = AUTO) -> str:  # noqa: A002
    """The format of the file that a Flink reads, of those names in its folder."""
    return choose(present, version, format)


def _decoded(content: str) -> bytes:
    return base64.b64decode(content, validate=True)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _resource(given: dict[str, Any]) -> Resource:
    """What is empty or None is left to the default."""
    unknown = sorted(set(given) - set(_FIELDS))
    if unknown or not {"name", "amount"} <= set(given):
        raise SettingsError(f"an external resource has {', '.join(map(str, given))}; allowed: {', '.join(_FIELDS)}")
    fields = {field: str(given[field]) for field in _FIELDS if given.get(field) not in (None, "")}
    amount = fields.pop("amount", "")
    if not amount.isascii() or not amount.isdigit():
        raise SettingsError(f"external resource {given['name']!r} has amount {amount!r}; allowed: a number from 1")
    return Resource(amount=int(amount), **fields)


class FilterModule:
    """The filters by their names."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """All of them."""
        functions = (
            flink_gpu_settings,
            flink_gpu_settings_fault,
            flink_gpu_served,
            flink_conf_merge,
            flink_conf_remove,
            flink_conf_read,
            flink_conf_choice,
        )
        return {function.__name__: function for function in functions}
