"""Read, merge into and remove from Flink's configuration files, so that what operators wrote stays byte for byte.

Settings that are to go, or are missing, are edited together, since the file is read anew after each edit. At the end it
is compared with what it was, so that no mistake in editing ever leaves this module.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf_names as names_of
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_flat import FlatFile
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_yaml import YamlFile
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import NAMES, owned_keys, superfluous_keys


class ConfFile(Protocol):
    """A file of either format while it is edited."""

    @property
    def content(self) -> bytes: ...  # noqa: D102
    @property
    def settings(self) -> dict[str, str]: ...  # noqa: D102
    @property
    def names(self) -> list[str]: ...  # noqa: D102
    @property
    def warnings(self) -> list[str]: ...  # noqa: D102

    def refuse(self, key: str, problem: str) -> FlinkConfError: ...  # noqa: D102
    def put(self, settings: Mapping[str, str], flat: Collection[str]) -> None: ...  # noqa: D102
    def cut(self, keys: Iterable[str]) -> None: ...  # noqa: D102
    def add_name(self, name: str) -> None: ...  # noqa: D102
    def drop_name(self, name: str) -> None: ...  # noqa: D102


FORMATS: dict[str, Callable[[bytes], ConfFile]] = {"flink-conf": FlatFile.of, "config-yaml": YamlFile.of}


@dataclass(frozen=True)
class Reading:
    """A file as Flink reads it; ``resources`` are the names that ``external-resources`` lists."""

    settings: dict[str, str]
    resources: list[str]
    warnings: list[str]


@contextmanager
def _of_bounded_depth() -> Iterator[None]:
    """Refuse what is nested deeper than Python goes: some hundred levels, of which Flink reads 400 to 500."""
    try:
        yield
    except RecursionError:
        problem = "nested too deeply to be read here; write it with fewer levels, such as a.b.c: 1"
        raise FlinkConfError(problem) from None


@_of_bounded_depth()
def read(content: bytes, file_format: str) -> Reading:
    """Read a file of that format, ``flink-conf`` or ``config-yaml``; ``FlinkConfError`` where Flink would not."""
    file = _open(content, file_format)
    warnings = file.warnings
    try:
        names = file.names
        warnings += [str(file.refuse(NAMES, _many_in_one(name))) for name in names_of.odd(names)]
    except FlinkConfError as error:
        names = []
        warnings.append(str(error))
    return Reading(file.settings, names, warnings)


@_of_bounded_depth()
def merge(content: bytes, file_format: str, wanted: Mapping[str, str], drop_names: Iterable[str] = ()) -> bytes:
    """The file with the settings of ``wanted_settings``, and without those of the resources in ``drop_names``.

    A setting is changed where it stands, in whatever spelling; where one is missing it is added to the mapping that it
    belongs to, or at the end. The names in ``external-resources`` stay, ours behind them. What would be the same is not
    touched. Removal then gives the file back, but for the end of its last line, where that had none and needed one, and
    for what said nothing, such as a lone null. ``FlinkConfError``, and no result, where Flink could not read the file,
    or where it can't be edited safely.
    """
    file = _open(content, file_format)
    names = wanted[NAMES].split(";")
    before, dropped = _state(file), [name for name in drop_names if name not in names]
    _refuse_odd(file)
    for name in dropped:
        file.drop_name(name)
    for name in names:
        if name not in file.names:
            file.add_name(name)
    file.cut([*_owned(dropped), *superfluous_keys(wanted)])
    settings = {key: value for key, value in wanted.items() if key != NAMES}
    file.put(settings, [key for key in settings if _has_branch(key, settings)])
    owned = {NAMES, *settings, *superfluous_keys(wanted), *_owned(dropped)}
    kept = [name for name in before.resources if name not in (*dropped, *names_of.NOTHING)]
    _check(file, before, owned, settings, [*kept, *(name for name in names if name not in kept)])
    return file.content


@_of_bounded_depth()
def remove(content: bytes, file_format: str, names: Iterable[str]) -> bytes:
    """The file without our settings of these resources; others below them stay, and so do lines that are comments."""
    file = _open(content, file_format)
    before, names = _state(file), list(names)
    for name in names:
        file.drop_name(name)
    file.cut(_owned(names))
    kept = [name for name in before.resources if name not in names]
    _check(file, before, {NAMES, *_owned(names)}, {}, kept)
    return file.content


def _open(content: bytes, file_format: str) -> ConfFile:
    if file_format not in FORMATS:
        raise FlinkConfError(f"format {file_format!r}; allowed: {', '.join(FORMATS)}")
    return FORMATS[file_format](content)


def _state(file: ConfFile) -> Reading:
    return Reading(file.settings, file.names, [])


def _owned(names: Iterable[str]) -> set[str]:
    return {key for name in names for key in owned_keys(name)}


def _has_branch(key: str, settings: Iterable[str]) -> bool:
    """Whether one of two keys goes on where the other ends, as FLIP-108's do: they can't both be nested."""
    return any(
        f"{other}.".startswith(f"{key}.") or f"{key}.".startswith(f"{other}.") for other in settings if other != key
    )


def _refuse_odd(file: ConfFile) -> None:
    for name in names_of.odd(file.names) if names_of.is_any(file.names) else ():
        raise file.refuse(NAMES, _many_in_one(name))


def _many_in_one(name: str) -> str:
    return f"{NAMES!r} holds {name!r}, which is one name to Flink; put ';' between names"


def _check(file: ConfFile, before: Reading, owned: set[str], settings: Mapping[str, str], names: list[str]) -> None:
    """Foreign settings must be what they were, ours what they shall be."""
    after = _state(file)
    foreign = {key: value for key, value in before.settings.items() if key not in owned}
    got = {key: value for key, value in after.settings.items() if key != NAMES}
    if got != {**foreign, **settings} or after.resources != names:
        changed = sorted({key for key, _ in got.items() ^ {**foreign, **settings}.items()}) or [NAMES]
        raise FlinkConfError.of_harm(", ".join(changed))
