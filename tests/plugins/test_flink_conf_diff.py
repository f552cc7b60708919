"""What is shown of a replaced file is what changed, and no secret beside it."""

from __future__ import annotations

import pytest
from ansible_collections.flinkops.gpu.plugins.module_utils.flink_conf_diff import changes
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_conf import merge, remove
from ansible_collections.flinkops.gpu.plugins.plugin_utils.flink_settings import Resource, wanted_settings

WANTED = wanted_settings([Resource("gpu", 2)])
NESTED = "s3:\n  secret-key: HUSH\n"
FLOW = "{s3.secret-key: HUSH, external-resources: [fpga]}\n"


def shown(before: str, name: str = "config.yaml") -> tuple[str, str]:
    """What is shown when our settings come and when they go."""
    flat = name == "flink-conf.yaml"
    file_format = "flink-conf" if flat else "config-yaml"
    merged = merge(before.encode(), file_format, WANTED)
    removed = remove(merged, file_format, ["gpu"])
    return changes("/c", before.encode(), merged, flat=flat), changes("/c", merged, removed, flat=flat)


def test_lines_that_change_are_shown_with_their_places() -> None:
    said = changes("/c/config.yaml", b"a: 1\nb: 2\nc: 3\n", b"a: 1\nb: 4\nc: 3\nd: 5\n", flat=False)
    assert said == "--- /c/config.yaml\n+++ /c/config.yaml\n@@ -2,1 +2,1 @@\n-b: 2\n+b: 4\n@@ -4,0 +4,1 @@\n+d: 5\n"


@pytest.mark.parametrize("before", [NESTED, NESTED.rstrip(), NESTED.replace("\n", "\r\n"), f"# x\n{NESTED}# y\n"])
def test_our_settings_are_shown_and_no_neighbour(before: str) -> None:
    for said, sign in zip(shown(before), "+-", strict=True):
        assert "HUSH" not in said
        assert f"{sign}    amount: 2" in said
        assert "not shown" not in said


@pytest.mark.parametrize("names", ["external-resources: [fpga, spare]", "external-resources:\n  - fpga\n  - spare"])
def test_a_list_is_shown(names: str) -> None:
    said = shown(f"{NESTED}{names}\n")[0]
    assert "gpu" in said.split("@@")[2]
    assert "HUSH" not in said
    assert "not shown" not in said


@pytest.mark.parametrize(
    "before",
    [
        FLOW,
        "{s3.secret-key: HUSH}\n",
        "{\n  s3.secret-key: HUSH\n}\n",
        "{a: 1,\n  s3.secret-key: HUSH,\n  external-resources: [fpga]\n}\n",
        '{"s3.secret-key":"HUSH","external-resource.gpu.amount":1,"external-resources":["gpu"]}',
        "external-resource: {hush: {param: HUSH}}\n",
    ],
)
def test_lines_with_more_than_one_setting_are_counted_only(before: str) -> None:
    for said in shown(before):
        assert "HUSH" not in said
    assert "are not shown" in shown(before)[0]


def test_the_flat_file_has_one_setting_a_line_whatever_it_holds() -> None:
    before = "s3.secret-key: HUSH\nexternal-resource.gpu.param.discovery-script.args: --x {a},b"
    said = shown(before, "flink-conf.yaml")[0]
    assert "-external-resource.gpu.param.discovery-script.args: --x {a},b\n" in said
    assert "+external-resource.gpu.amount: 2" in said
    assert "HUSH" not in said


def test_a_file_of_any_encoding_is_shown() -> None:
    assert "+b: \ufffd" in changes("/c", b"", b"b: \xe9\n", flat=False)
