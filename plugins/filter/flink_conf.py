"""Filters over Flink's configuration files, as ``slurp`` brings them and ``copy`` takes them: in base64.

What they do is in ``plugin_utils/flink_conf.py`` and ``flink_settings.py``.
"""

from __future__ import annotations

import base64
import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    GPU_DRIVER,
    Resource,
    SettingsError,
    is_served,
    superfluous_keys,
    wanted_settings,
)

_FIELDS = ("name", "amount", "driver_class", "script", "args", "config_key")
_KINDS = (
    (str, "text"),
    (bool, "true or false"),
    ((int, float), "a number"),
    (Mapping, "a mapping"),
    (Iterable, "a list"),
)
_OF_SETTINGS = "give it what flink_gpu_settings returned"


class _GivenError(ValueError):
    """What a filter doesn't take, and the mend."""

    @classmethod
    def of_kind(cls, what: str, given: Any, mend: str) -> _GivenError:
        """It is of a wrong kind; what it is may be a secret."""
        kinds = (name for kind, name in _KINDS if isinstance(given, kind))
        return cls(f"{what} is {'null' if given is None else next(kinds, type(given).__name__)}; {mend}")


def _refusing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Say what is wrong in one line, without a stack trace."""

    @functools.wraps(function)
    def filter_function(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (FlinkConfError, SettingsError, _GivenError) as error:
            raise AnsibleFilterError(f"flinkops.gpu.{function.__name__}: {error}") from error

    return filter_function


@_refusing
def flink_gpu_settings(
    resources: list[dict[str, Any]], deployment: str = "standalone", vendor: str = "nvidia", protocol: str = "released"
) -> dict[str, str]:
    """The settings to write for these external resources."""
    made = [_resource(resource) for resource in _mappings(resources)]
    return wanted_settings(made, deployment=deployment, vendor=vendor, protocol=protocol)


def flink_gpu_settings_fault(resources: list[dict[str, Any]], deployment: str = "", vendor: str = "nvidia") -> str:
    """What in these external resources Flink can't carry, each for itself or all in a deployment; empty if it can."""
    try:
        made = [_resource(resource) for resource in _mappings(resources)]
        if deployment:
            wanted_settings(made, deployment=deployment, vendor=vendor)
    except (SettingsError, _GivenError) as error:
        return str(error)
    return ""


@_refusing
def flink_gpu_served(resources: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those of the external resources that our script serves; the others are not of its GPUs."""
    asked = [(each, _fields(each)) for each in _mappings(resources)]
    return [each for each, fields in asked if is_served(fields.get("driver_class", GPU_DRIVER), fields.get("script"))]


@_refusing
def flink_conf_merge(content: str, format: str, wanted: dict[str, str], drop_names: list[str] | None = None) -> str:  # noqa: A002
    """The file with the wanted settings."""
    names = [] if drop_names is None else _texts("drop_names", drop_names)
    return _encoded(flink_conf.merge(_decoded(content), _format(format), _wanted(wanted), names))


@_refusing
def flink_conf_remove(content: str, format: str, names: list[str]) -> str:  # noqa: A002
    """The file without our settings of these resources."""
    return _encoded(flink_conf.remove(_decoded(content), _format(format), _texts("names", names)))


@_refusing
def flink_conf_read(content: str, format: str) -> dict[str, Any]:  # noqa: A002
    """The file as Flink reads it; a file that Flink refuses is an answer, too."""
    answer: dict[str, Any] = {"settings": {}, "resources": [], "warnings": [], "error": None}
    file, file_format = _decoded(content), _format(format)
    try:
        reading = flink_conf.read(file, file_format)
    except FlinkConfError as error:
        return {**answer, "error": {"line": error.line, "column": error.column, "message": str(error)}}
    return {**answer, "settings": reading.settings, "resources": reading.resources, "warnings": reading.warnings}


def _decoded(content: Any) -> bytes:
    text = _text("content", content, "give it base64, as slurp returns it")
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise _GivenError(f"content is no base64 ({error}); give it what slurp returned") from error


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")


def _format(given: Any) -> str:
    if given not in [*flink_conf.FORMATS]:
        raise _GivenError(f"format is {given!r}; allowed: {', '.join(flink_conf.FORMATS)}")
    return str(given)


def _text(what: str, given: Any, mend: str) -> str:
    if not isinstance(given, str):
        raise _GivenError.of_kind(what, given, mend)
    return given


def _list(what: str, given: Any, mend: str) -> list[Any]:
    """A text is none, though Python would go through its letters."""
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise _GivenError.of_kind(what, given, mend)
    return list(given)


def _texts(what: str, given: Any) -> list[str]:
    mend = "give it a list of texts, such as ['gpu']"
    return [_text(f"an item of {what}", item, mend) for item in _list(what, given, mend)]


def _mappings(given: Any) -> list[Mapping[str, Any]]:
    mend = "give it a list, such as [{'name': 'gpu', 'amount': 1}]"
    resources = _list("the list of external resources", given, mend)
    for resource in resources:
        if not isinstance(resource, Mapping):
            raise _GivenError.of_kind("an external resource", resource, mend)
    return resources


def _wanted(given: Any) -> Mapping[str, str]:
    if not isinstance(given, Mapping):
        raise _GivenError.of_kind("wanted", given, _OF_SETTINGS)
    for key, value in given.items():
        _text(f"{key!r} in wanted", value, _OF_SETTINGS)
    try:
        superfluous_keys(given)
    except KeyError as error:
        raise _GivenError(f"wanted has no {error.args[0]!r}; {_OF_SETTINGS}") from error
    return given


def _fields(given: Mapping[str, Any]) -> dict[str, str]:
    """What is empty or None is left to the default."""
    for field in _FIELDS:
        value = given.get(field)
        if isinstance(value, bool) or not isinstance(value, (str, int, type(None))):
            raise _GivenError.of_kind(f"an external resource's {field}", value, "give it text or a number")
    return {field: str(given[field]) for field in _FIELDS if given.get(field) not in (None, "")}


def _resource(given: Mapping[str, Any]) -> Resource:
    if not {"name", "amount"} <= set(given) <= set(_FIELDS):
        raise SettingsError(f"an external resource has {', '.join(map(str, given))}; allowed: {', '.join(_FIELDS)}")
    fields = _fields(given)
    name, amount = fields.pop("name", ""), fields.pop("amount", "")
    if not re.fullmatch("[0-9]{1,18}", amount):
        raise SettingsError(f"external resource {name!r} has amount {amount!r}; allowed: a number from 1")
    return Resource(name, int(amount), **fields)


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
        )
        return {function.__name__: function for function in functions}
