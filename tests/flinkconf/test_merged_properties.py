"""Any file that people may have written keeps, merged, all that is not ours: Flink's own loader is the judge."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_error import FlinkConfError
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf_names import is_any, odd
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from .loader import Loader
from .merging import FORMATS, check_merged, check_removed, is_refused
from .readers import FLAT, YAML, Reader
from .strategies import WANTED, flat_files, yaml_files

pytestmark = [pytest.mark.flink, pytest.mark.timeout(150, func_only=True)]

FILES = {FLAT: flat_files(), YAML: yaml_files()}
bounded = settings(
    max_examples=300,
    deadline=None,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # the same without Flink, in tests/plugins, shrinks faster
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@bounded
@given(data=st.data())
def test_any_file_is_read_as_flink_does_and_keeps_what_is_not_ours(
    data: st.DataObject, reader: Reader, loader: Loader
) -> None:
    content, wanted = data.draw(FILES[reader.file]), data.draw(st.sampled_from(WANTED))
    before, file_format = loader.load_files({reader.file: content}), FORMATS[reader.file]
    if is_refused(before):
        with pytest.raises(FlinkConfError):
            flink_conf.read(content, file_format)
        return
    reading, names = flink_conf.read(content, file_format), wanted["external-resources"].split(";")
    assert reading.settings == before.settings
    if odd(reading.resources) and is_any(reading.resources):
        return  # left to people

    merged = flink_conf.merge(content, file_format, wanted)
    cleaned = flink_conf.remove(merged, file_format, names)
    check_merged(before, loader.load_files({reader.file: merged}), wanted)
    check_removed(before, loader.load_files({reader.file: cleaned}), names)
    assert flink_conf.merge(merged, file_format, wanted) == merged
