"""A file that the collection merged means to Flink what was asked for, and else what it meant before."""

from __future__ import annotations

from operator import attrgetter

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

from .answers import Case
from .cases import CASES
from .loader import Loaded, Loader
from .merging import FORMATS, check_merged, check_removed, is_refused
from .readers import FLAT, YAML, Reader

pytestmark = pytest.mark.flink

WANTED = {
    protocol: wanted_settings([Resource("gpu", 2, args="--id uuid"), Resource("more", 1)], protocol=protocol)
    for protocol in ("released", "flip108")
}
# Flink loads these, but takes several names for one, or a list for a name: what was meant is for people to say.
ODD_NAMES = {
    FLAT: {
        "names with a comma",
        "names with a blank",
        "names as a list in one line",
        "list of names as a string",
        "name that is a number",
        "null among the names",
    },
    YAML: {"names with a comma", "names with a blank", "null among the names"},
}
# An alias brings ours along with settings of others, so that these can't go alone.
TIED = {FLAT: set[str](), YAML: {"anchor on a block"}}

each_case = pytest.mark.parametrize("case", CASES, ids=attrgetter("name"))
each_protocol = pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED)


@each_case
def test_a_file_is_read_and_refused_as_flink_does(case: Case, reader: Reader, loader: Loader) -> None:
    loaded = loader.load_files({reader.file: case.content})

    if is_refused(loaded):
        with pytest.raises(FlinkConfError) as caught:
            flink_conf.read(case.content, FORMATS[reader.file])
        check_place(caught.value, loaded)
    else:
        assert flink_conf.read(case.content, FORMATS[reader.file]).settings == loaded.settings


@each_protocol
@each_case
def test_a_merged_file_has_our_settings_and_a_cleaned_one_has_none(
    case: Case, wanted: dict[str, str], reader: Reader, loader: Loader
) -> None:
    before, file_format = loader.load_files({reader.file: case.content}), FORMATS[reader.file]
    if is_refused(before) or case.name in ODD_NAMES[reader.file]:
        with pytest.raises(FlinkConfError) as caught:
            flink_conf.merge(case.content, file_format, wanted)
        check_place(caught.value, before)
        return

    merged = flink_conf.merge(case.content, file_format, wanted)
    check_merged(before, loader.load_files({reader.file: merged}), wanted)
    assert flink_conf.merge(merged, file_format, wanted) == merged
    for content in (case.content, merged):
        check_cleaned(case, content, before, reader, loader)


def check_cleaned(case: Case, content: bytes, before: Loaded, reader: Reader, loader: Loader) -> None:
    if case.name in TIED[reader.file]:
        with pytest.raises(FlinkConfError, match="an anchor ties it") as caught:
            flink_conf.remove(content, FORMATS[reader.file], ["gpu", "more"])
        assert caught.value.line
        return
    cleaned = flink_conf.remove(content, FORMATS[reader.file], ["gpu", "more"])
    check_removed(before, loader.load_files({reader.file: cleaned}), ["gpu", "more"])


def check_place(refusal: FlinkConfError, loaded: Loaded) -> None:
    """The error says where, and there where Flink does, if that does."""
    assert refusal.line > 0 < refusal.column
    assert loaded.place in (None, (refusal.line, refusal.column))
    assert is_refused(loaded) or "one name to Flink" in str(refusal)
