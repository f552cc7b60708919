"""Which of its configuration files a Flink reads (docs/flink-config.md)."""

from __future__ import annotations

import re
from collections.abc import Collection

AUTO = "auto"
FILES = {"flink-conf": "flink-conf.yaml", "config-yaml": "config.yaml"}
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})([.-]\S+)?")
_RESOURCES_FROM, _BOTH_FROM, _YAML_ALONE_FROM = (1, 11), (1, 19), (2, 0)


class ChoiceError(ValueError):
    """Why no file can be chosen, and the mend."""


def choose(present: Collection[str], version: str, file_format: str = AUTO) -> str:
    """The format of the file that counts, where those of the names ``present`` lie in the folder.

    Where none does it is that of a new installation. A version that is unknown is empty: then the only file there
    counts.
    """
    formats = readable(version)
    if file_format != AUTO:
        _check(file_format, formats, present, version)
        return file_format
    there = [each for each in formats if FILES[each] in present]
    if not version and len(there) != 1:
        told = "both config.yaml and flink-conf.yaml are" if there else "neither config.yaml nor flink-conf.yaml is"
        raise ChoiceError(f"{told} there, and Flink's version is unknown; set flink_gpu_flink_version")
    return (there or formats[-1:])[0]


def agreed(told: str, found: str) -> str:
    """The version that an operator told, or else that was found; both must be of one minor release."""
    if told and found and _minor(told) != _minor(found):
        raise ChoiceError(
            f"flink_gpu_flink_version is {told!r}, but Flink {found} lies there; leave it empty, or mend it"
        )
    return told or found


def readable(version: str) -> list[str]:
    """The formats, first the one that is read when both files are there."""
    if not version:
        return list(FILES)
    minor = _minor(version)
    if minor >= _YAML_ALONE_FROM:
        return ["config-yaml"]
    return list(FILES) if minor >= _BOTH_FROM else ["flink-conf"]


def _minor(version: str) -> tuple[int, int]:
    """The minor release; 1.20 that was not put in quotes has become 1.2 on its way here."""
    matched = _VERSION.fullmatch(version)
    minor = (int(matched[1]), int(matched[2])) if matched else (0, 0)
    if minor < _RESOURCES_FROM:
        raise ChoiceError(f"Flink's version is {version!r}; allowed: from 1.11 on, in quotes, such as '1.20'")
    return minor


def _check(file_format: str, formats: list[str], present: Collection[str], version: str) -> None:
    first = FILES[formats[0]]
    if file_format not in formats:
        raise ChoiceError(f"flink_gpu_conf_format is {file_format!r}, but Flink {version} reads {first} alone")
    if version and file_format != formats[0] and first in present:
        raise ChoiceError(
            f"flink_gpu_conf_format is {file_format!r}, but {first} is there, which Flink {version} reads instead;"
            " move its settings, and remove it"
        )
