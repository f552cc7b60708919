"""Any settings file that Flink loads keeps, merged, all that is not ours, and a second merge changes nothing."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, read, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_names import odd
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import NAMES, owned_keys
from hypothesis import HealthCheck, assume, given, settings

from tests.flinkconf.strategies import OURS, WANTED, flat_files, yaml_files

BOM = b"\xef\xbb\xbf"


def theirs(content: bytes, file_format: str, names: list[str]) -> dict[str, str]:
    owned = {NAMES, *(key for name in names for key in owned_keys(name))}
    return {key: value for key, value in read(content, file_format).settings.items() if key not in owned}


def is_foreign(line: bytes) -> bool:
    return not any(
        part.encode() in line
        for part in ("external-resource", "gpu", *OURS, "param", "discovery", "path", "args", "--y", " - ")
    )


def check(content: bytes, file_format: str, wanted: dict[str, str]) -> None:
    names, before = wanted[NAMES].split(";"), read(content, file_format)
    merged = merge(content, file_format, wanted)
    after = read(merged, file_format)
    assert theirs(merged, file_format, names) == theirs(content, file_format, names)
    assert {key: after.settings.get(key) for key in wanted if key != NAMES} == {
        k: v for k, v in wanted.items() if k != NAMES
    }
    assert after.resources == [*before.resources, *(name for name in names if name not in before.resources)]
    assert merge(merged, file_format, wanted) == merged
    removed = remove(merged, file_format, names)
    assert theirs(removed, file_format, names) == theirs(content, file_format, names)
    assert not {key for name in names for key in owned_keys(name)} & set(read(removed, file_format).settings)
    assert read(removed, file_format).resources == [name for name in before.resources if name not in names]
    for edited in (merged, removed):
        check_lines(content, edited)


def check_lines(content: bytes, edited: bytes) -> None:
    """Each foreign line is still there, in its order; a comment may have moved to the left with the block it was in."""
    remaining = iter(edited.removeprefix(BOM).splitlines(keepends=True))
    for line in filter(is_foreign, content.removeprefix(BOM).splitlines(keepends=True)):
        moved = line.lstrip() if line.lstrip().startswith(b"#") else line
        assert any(other == line or other.strip() == moved.strip() for other in remaining), line


def loads(content: bytes) -> bool:
    try:
        read(content, "config-yaml")
    except FlinkConfError:
        return False
    return True


bounded = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
each_wanted = pytest.mark.parametrize("wanted", WANTED, ids=["released", "flip108", "kubernetes", "yarn"])


@each_wanted
@bounded
@given(content=yaml_files().filter(loads))
def test_a_merged_yaml_file_keeps_all_that_is_not_ours(wanted: dict[str, str], content: bytes) -> None:
    check(content, "config-yaml", wanted)


@each_wanted
@bounded
@given(content=flat_files())
def test_a_merged_flat_file_keeps_all_that_is_not_ours(wanted: dict[str, str], content: bytes) -> None:
    assume(not odd(read(content, "flink-conf").resources))
    check(content, "flink-conf", wanted)
