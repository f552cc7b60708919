"""``render_conf`` writes into folders of this machine: all that is asked for or nothing, and nobody else's is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.flinkops.gpu.plugins.plugin_utils import flink_conf

from tests.render.golden import GOLDEN, variables, wanted
from tests.render.rendering import render

pytestmark = pytest.mark.timeout(120)

THEIRS_FLAT = b"# Gr\xf6\xdfe\r\ntaskmanager.numberOfTaskSlots: 4\r\nexternal-resource.gpu.amount: 8 # all\r\n"
THEIRS = b"taskmanager:\n  numberOfTaskSlots: 4 # each\nexternal-resources: [fpga]\n"
FOREIGN = b"kind: Pod # ours\n"


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Mode and content of each file in the folder and below."""
    found = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): (path.stat().st_mode & 0o777, path.read_bytes()) for path in found}


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(mode)


def into(folder: Path, case: str = "standalone", version: str = "2.3.0", **others: Any) -> dict[str, Any]:
    """The variables of a host whose settings are rendered into that folder."""
    return {**variables(case, version), "flink_gpu_render_to": str(folder), **others}


def test_a_relative_folder_is_made_where_the_command_is_given_and_a_second_run_changes_nothing(tmp_path: Path) -> None:
    given = {**variables("yarn", "2.0.2"), "flink_gpu_render_to": "./conf/new"}
    golden = {path.name: (0o644, path.read_bytes()) for path in (GOLDEN / "2.0.2/yarn").iterdir()}

    assert render(tmp_path, given, check=True).must_succeed().changed == ["render_files | Make the folder"]
    assert not (tmp_path / "conf").exists()

    assert len(render(tmp_path, given).must_succeed().changed) == 3
    assert tree(tmp_path / "conf/new") == golden
    assert render(tmp_path, given).must_succeed().changed == []
    assert tree(tmp_path / "conf/new") == golden


def test_what_stands_in_the_folder_is_merged_into_and_the_rest_stays(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    put(conf / "flat/flink-conf.yaml", THEIRS_FLAT, 0o600)
    put(conf / "nested/config.yaml", THEIRS, 0o640)
    put(conf / "nested/flink-conf.yaml", THEIRS_FLAT)
    put(conf / "nested/pod-template.yaml", (GOLDEN / "2.3.0/kubernetes/pod-template.yaml").read_bytes())
    put(conf / "nested/yarn-nodemanager.md", b"# ours\n")
    hosts = {
        "flat": into(conf / "flat", version="1.20.5"),
        "nested": into(conf / "nested", "standalone-flip108"),
        "twin": into(conf / "nested/../nested", "standalone-flip108"),
    }
    before = tree(conf)

    foretold = render(tmp_path, {}, hosts, check=True, diff=True).must_succeed()
    assert tree(conf) == before
    assert "+external-resources: gpu" in foretold.stdout

    outcome = render(tmp_path, {}, hosts).must_succeed()
    after = tree(conf)
    flat, nested = after["flat/flink-conf.yaml"], after["nested/config.yaml"]
    theirs = THEIRS_FLAT.replace(b"8 # all", b"2 # all")
    assert (flat[0], nested[0]) == (0o600, 0o640)
    assert flat[1].startswith(theirs)
    assert nested[1].startswith(THEIRS.replace(b"[fpga]", b"[fpga, gpu]"))
    read = flink_conf.read(nested[1], "config-yaml").settings
    assert read == {
        **wanted("standalone-flip108"),
        "external-resources": "[fpga, gpu]",
        "taskmanager.numberOfTaskSlots": "4",
    }
    changed = {"flat/flink-conf.yaml", "nested/config.yaml", "nested/pod-template.yaml"}
    assert {name: each for name, each in after.items() if name in before and name not in changed} == {
        name: each for name, each in before.items() if name not in changed
    }
    assert sorted(before.keys() ^ after.keys()) == ["nested/pod-template.yaml"]  # bears our mark, and is not needed now

    assert "flink-conf.yaml is there, too, and Flink 2.3.0 does not read it; remove it" in outcome.stdout
    assert "external-resources lists fpga, too" in outcome.stdout
    assert "the arguments of FLIP-108 are lost" in outcome.stdout
    assert outcome.stdout.count("warning: ") == 3
    assert outcome.of("twin").changed == []  # the folder's other host has done it

    assert render(tmp_path, {}, hosts).must_succeed().changed == []
    assert tree(conf) == after


def test_what_can_not_be_rendered_is_refused_and_nothing_is_written_for_any_host(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    put(conf / "broken/config.yaml", b"a: 1\na: 2\n")
    put(conf / "odd/config.yaml", b"external-resources: gpu,fpga\n")
    put(conf / "pod/pod-template.yaml", FOREIGN)
    put(conf / "there/config.yaml", THEIRS)
    hosts = {
        "broken": into(conf / "broken"),
        "lost": into(conf / "lost", "yarn-flip108", version="1.20.5"),
        "new": into(conf / "new", version="2.0.2", flink_gpu_conf_format="flink-conf"),
        "odd": into(conf / "odd"),
        "old": into(conf / "old", version="1.18.1", flink_gpu_conf_format="config-yaml"),
        "pod": into(conf / "pod", "kubernetes-flip108"),
        "good": into(conf / "good"),
        "there": into(conf / "there"),
    }
    before = tree(conf)

    refused = {each.host: each.msg for each in render(tmp_path, {}, hosts).results if each.status == "failed"}

    lost = (
        'flink_gpu_driver_protocol is "flip108", but for {} Flink itself writes config.yaml anew, without the arguments'
    )
    assert refused.keys() == hosts.keys() - {"good", "there"}
    assert "line 2, column 1: 'a' again, so Flink refuses the file" in refused["broken"]
    assert lost.format("yarn") in refused["lost"]
    assert "flink_gpu_conf_format is 'flink-conf', but Flink 2.0.2 reads config.yaml alone" in refused["new"]
    assert "line 1, column 1: 'external-resources' holds 'gpu,fpga', which is one name to Flink" in refused["odd"]
    assert "flink_gpu_conf_format is 'config-yaml', but Flink 1.18.1 reads flink-conf.yaml alone" in refused["old"]
    assert lost.format("kubernetes") in refused["pod"]
    assert f"{conf}/pod/pod-template.yaml was not written by render_conf, which would replace it" in refused["pod"]
    assert (tree(conf), sorted(path.name for path in conf.iterdir())) == (before, ["broken", "odd", "pod", "there"])


def test_values_that_could_break_out_of_a_file_are_refused(tmp_path: Path) -> None:
    fpga = {"name": "fpga", "amount": 1, "driver_class": "org.example.Fpga"}
    hostile: list[dict[str, Any]] = [
        {"flink_gpu_script_args": "--debug\ntaskmanager.host: evil"},
        {"flink_gpu_script_args": "--debug # comment"},
        {"flink_gpu_resource_name": "gpu: x"},
        {"flink_gpu_extra_resources": [{**fpga, "config_key": "a.org/b\nspec: {}"}]},
        {"flink_gpu_extra_resources": [{**fpga, "script": "/bin/a b"}]},
        {"flink_gpu_extra_resources": [{**fpga, "driver_class": "org.example.Fpga: x"}]},
        {"flink_gpu_flink_version": "2.3.0\nx"},
    ]
    conf = tmp_path / "conf"
    hosts = {f"host-{number}": into(conf, **values) for number, values in enumerate(hostile)}
    last = hosts.popitem()

    assert len(render(tmp_path, {}, hosts).failures) == len(hosts)
    assert render(tmp_path, last[1]).failures
    assert not conf.exists()


def test_a_folder_and_a_version_have_to_be_named_and_whether_the_inventory_counts(tmp_path: Path) -> None:
    version = 'flink_gpu_flink_version is ""; allowed: the version of Flink that is to read it, such as 2.3.0'
    folder = 'flink_gpu_render_to is ""; allowed: the folder to write to, such as ./conf'
    group = (
        "flink_gpu_hosts is not given, and of an inventory no variable counts without;"
        " allowed: -e flink_gpu_hosts=GROUP, or =localhost for none"
    )
    hosts = {"one": into(tmp_path / "conf")}

    assert render(tmp_path, {}, hosts, group=None).failures == [f"{folder}. {group}. {version}"]
    assert render(tmp_path, {}, hosts, group="localhost").failures == [f"{folder}. {version}"]


def test_hosts_that_want_different_settings_in_one_folder_are_refused(tmp_path: Path) -> None:
    conf = tmp_path / "conf"
    pod = conf / "pod"
    hosts = {
        "one": into(conf),
        "other": into(conf, flink_gpu_amount=4),
        "quick": into(pod, "kubernetes"),
        "slow": into(pod, "kubernetes", flink_gpu_wait=2),
    }

    messages = [message.partition(";")[0] for message in render(tmp_path, {}, hosts).failures]

    expected = [f"one, other want different files in {conf}", f"quick, slow want different files in {pod}"]
    assert sorted(messages) == sorted(expected * 2)
    assert not conf.exists()
