"""What a merged or a cleaned file has to mean to Flink, beside what it meant before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import (
    NAMES,
    owned_keys,
    superfluous_keys,
)

from .loader import Loaded
from .readers import FLAT, YAML

FORMATS = {FLAT: "flink-conf", YAML: "config-yaml"}


def is_refused(loaded: Loaded) -> bool:
    """Whether Flink did not load the file, rather than only failed to use the external resources in it."""
    return bool(loaded.error) and not loaded.settings


def check_merged(before: Loaded, after: Loaded, wanted: Mapping[str, str], dropped: Iterable[str] = ()) -> None:
    """All settings are those from before and ours, and the external resources are there with their amounts."""
    ours = {key: value for key, value in wanted.items() if key != NAMES}
    owned = {*ours, *superfluous_keys(wanted), *(key for name in dropped for key in owned_keys(name))}
    amounts = {name: ours[f"external-resource.{name}.amount"] for name in wanted[NAMES].split(";")}

    assert not after.error
    assert _without(after.settings, set()) == {**_without(before.settings, owned), **ours}
    check_resources(before, after, {**_without(before.resources, set(dropped)), **amounts})


def check_removed(before: Loaded, after: Loaded, names: Iterable[str]) -> None:
    """Nothing is left of these resources, and all else is as before."""
    owned = {key for name in names for key in owned_keys(name)}

    assert not is_refused(after)
    assert _without(after.settings, set()) == _without(before.settings, owned)
    check_resources(before, after, _without(before.resources, set(names)))


def check_resources(before: Loaded, after: Loaded, expected: Mapping[str, str]) -> None:
    """These, and where an amount of ours kept Flink from using any before, perhaps others."""
    assert expected.items() <= after.resources.items()
    assert before.error or after.resources == expected


def _without(settings: Mapping[str, str], owned: set[str]) -> dict[str, str]:
    return {key: value for key, value in settings.items() if key not in owned and key != NAMES}
