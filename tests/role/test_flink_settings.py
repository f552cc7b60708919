"""Flink's own settings: merged where Flink reads them, followed, taken out again, and no other changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.booted.host import BootedHost
from tests.booted.taskmanager import TaskManagers
from tests.role.fleet import GROUP, ISOLATED, differences, prepare_gpus, snapshot
from tests.role.hosts import BULLSEYE
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

UNIT, OUTDATED = "taskmanager.service", "runs with an older drop-in, or older settings of Flink, until it is restarted"
HOME = "/opt/flink"
CONF = f"{HOME}/conf"
FILE, FLAT = f"{CONF}/config.yaml", f"{CONF}/flink-conf.yaml"
JAR = "plugins/external-resource-gpu/flink-external-resource-gpu-2.3.0.jar"
OPERATORS = """\
# ours, by hand
taskmanager:
  numberOfTaskSlots: "4"   # why
external-resources: [npu]
external-resource.npu.amount: 1
"""
MERGED = """\
# ours, by hand
taskmanager:
  numberOfTaskSlots: "4"   # why
external-resources: [npu, gpu]
external-resource.npu.amount: 1
external-resource:
  gpu:
    amount: 2
    driver-factory:
      class: org.apache.flink.externalresource.gpu.GPUDriverFactory
    param:
      discovery-script:
        path: /usr/local/bin/flink-gpu-discovery
        args: --resource gpu
"""
OTHERS = """\
external-resource:
  card:
    amount: 1
    driver-factory:
      class: org.apache.flink.externalresource.gpu.GPUDriverFactory
    param:
      discovery-script:
        path: /usr/local/bin/flink-gpu-discovery
        args: --resource card --debug
  more:
    amount: 1
    driver-factory:
      class: org.apache.flink.externalresource.gpu.GPUDriverFactory
    param:
      discovery-script:
        path: /usr/local/bin/flink-gpu-discovery
        args: --resource more
  fpga:
    amount: 3
    driver-factory:
      class: org.example.FpgaDriverFactory
"""
# Each does its harm beside the others.
DAMAGE = {
    f"sed -i 's/npu, gpu/npu/' {FILE}": "external-resources doesn't list 'gpu'",
    f"sed -i '/amount: 2/d' {FILE}": "external-resource.gpu.amount is missing; set it to 2",
    f"sed -i s/GPUDriver/GpuDriver/ {FILE}": "driver-factory.class is 'org.apache.flink.externalresource.gpu.Gpu",
    f"sed -i s:local/bin:bin: {FILE}": "discovery-script.path is '/usr/bin/flink-gpu-discovery'",
    f"sed -i 's/--resource gpu/& --enable-coordination/' {FILE}": "--enable-coordination, which means nothing",
    f"rm {HOME}/{JAR}": "plugins/external-resource-gpu holds no jar",
    f"chown root: {FILE}": f"as flink: can't read {FILE}",
}
VARIABLES = {**ISOLATED, "flink_gpu_conf_dir": CONF}
MERGE = "flink | Merge the settings"
FORGET = "flink | Forget what is out"
WRITE_DOWN = "flink | Write down what is merged, for a removal to take out"


@dataclass
class Site:
    """A host with Flink's files, as it was before the role came."""

    control: ControlNode
    host: BootedHost
    before: dict[str, str]

    def play(self, playbook: str = "site", *, check: bool = False, diff: bool = False, **variables: object) -> Outcome:
        return self.control.play(
            f"flinkops.gpu.{playbook}",
            [self.host],
            check=check,
            diff=diff,
            variables={**VARIABLES, **variables},
            group=GROUP,
        )

    def text(self, path: str = FILE) -> str:
        return self.host.succeed("cat", path)

    def report(self, **variables: Any) -> dict[str, Any]:
        """What verify tells of the host, which changes nothing."""
        before = snapshot(self.host)
        outcome = self.play("verify", **variables)
        assert differences(before, snapshot(self.host)) == {}
        told: dict[str, Any] = json.loads(outcome.named("Report on the host").msg)
        assert (outcome.rc == 0) == (not told["problems"])
        return told


@pytest.fixture(scope="class")
def site(control: ControlNode, host: BootedHost) -> Site:
    prepare_gpus(host)
    host.succeed("useradd", "flink")
    host.succeed("sh", "-ec", f"ln -s {CONF} /opt/link && chown -h flink /opt/link")
    for path in (f"{HOME}/lib/flink-dist-2.3.0.jar", f"{HOME}/{JAR}"):
        host.write(path, "")
    host.write(FILE, OPERATORS, then=f"chown flink: {CONF} {FILE} && chmod 0640 {FILE}")
    return Site(control, host, snapshot(host))


@pytest.mark.parametrize("host", [BULLSEYE], indirect=True, ids=str)
class TestFromTheFirstRunToTheRemoval:
    """On Python 3.9, the oldest that the module may meet."""

    def test_settings_are_merged_once_and_taken_out_again(self, site: Site) -> None:
        checked = site.play(check=True, diff=True).must_succeed()
        assert differences(site.before, snapshot(site.host)) == {}

        played = site.play().must_succeed()

        assert played.changed == checked.changed
        assert [task for task in played.changed if task.startswith("flink |")] == [WRITE_DOWN, MERGE]
        assert site.text() == MERGED
        shown = [line for line in checked.diffs[MERGE][0]["prepared"].splitlines() if line[:1] in "+-"][2:]
        assert shown == [
            "-external-resources: [npu]",
            "+external-resources: [npu, gpu]",
            *(f"+{line}" for line in MERGED.splitlines()[5:]),
        ]
        assert site.host.succeed("stat", "-c", "%U:%G %a", FILE) == "flink:flink 640\n"
        assert site.host.succeed("ls", CONF) == "config.yaml\n"
        assert site.play().must_succeed().changed == []

        removed = site.play("remove").must_succeed()

        assert json.loads(removed.named("absent | Tell what was done, or would be").msg)[0] == f"edit {FILE}"
        assert differences(site.before, snapshot(site.host)) == {}


class TestChanges:
    """One test builds upon the other."""

    def test_renamed_and_further_resources_take_the_place_of_those_before(self, site: Site) -> None:
        site.play().must_succeed()

        site.play(
            flink_gpu_resource_name="card",
            flink_gpu_amount=1,
            flink_gpu_script_args="--debug",
            flink_gpu_extra_resources=[
                {"name": "more", "amount": 1},
                {"name": "fpga", "amount": 3, "driver_class": "org.example.FpgaDriverFactory"},
            ],
            flink_gpu_conf_backup=True,
        ).must_succeed()

        assert site.text() == OPERATORS.replace("[npu]", "[npu, card, more, fpga]") + OTHERS
        (backup,) = site.host.succeed("sh", "-c", f"ls {FILE}.*").split()
        assert site.text(backup) == MERGED
        settings = site.text("/etc/flink-gpu-discovery.conf")
        assert "max-gpus-per-owner = 2\n" in settings
        assert "resources = card, more\n" in settings

        site.play().must_succeed()

        assert site.text() == MERGED
        assert site.host.succeed("sh", "-c", f"ls {CONF}/*.yaml") == f"{FILE}\n"

    def test_verify_says_all_that_keeps_a_taskmanager_from_its_gpus(self, site: Site) -> None:
        site.host.succeed("sh", "-ec", f"cp -a {HOME} /root/whole; {'; '.join(DAMAGE)}")

        problems = site.report()["problems"]

        assert [told for told in DAMAGE.values() if not [text for text in problems if told in text]] == []
        assert len(problems) == len(DAMAGE)

        site.host.succeed("rm", FILE)
        assert site.report()["problems"] == [
            f"{FILE} is what Flink reads, and is missing; make it, for none is made here"
        ]
        site.host.succeed("sh", "-ec", f"rm -r {HOME}; mv /root/whole {HOME}")

    def test_verify_warns_of_what_else_an_operator_should_know(self, site: Site) -> None:
        site.host.succeed("sh", "-ec", f"cp {FILE} {FLAT}; sed -i 's/--resource gpu/& --id index/' {FILE}")

        warnings = site.report(flink_gpu_amount=5)["warnings"]

        site.host.succeed("rm", FLAT)
        for told in (
            "flink-conf.yaml beside it is not read by Flink 2.3.0; remove it",
            "'--id index' in its arguments",
            "a TaskManager asks for 5 GPUs, and this host has 4",
        ):
            assert [text for text in warnings if told in text], told

    def test_a_file_that_flink_could_not_load_is_refused_before_anything_is_changed(self, site: Site) -> None:
        site.host.write(FILE, f"{MERGED}taskmanager: again\n")
        before = snapshot(site.host)
        place = f"{FILE}: line {len(MERGED.splitlines()) + 1}, column 1: "

        outcomes = [site.play(flink_gpu_wait=1), site.play("remove"), site.play("verify")]

        assert [outcome.rc == 0 for outcome in outcomes] == [False] * 3
        assert differences(before, snapshot(site.host)) == {}
        for outcome in outcomes[:2]:
            (failure,) = outcome.failures
            assert failure.startswith(f"{place}'taskmanager' again")
        (problem,) = json.loads(outcomes[2].named("Report on the host").msg)["problems"]
        assert problem.startswith(place)
        site.host.write(FILE, MERGED)

    def test_another_flink_in_the_old_one_s_place_is_followed(self, site: Site) -> None:
        newer = f"{HOME}-1.20"
        site.host.write(f"{newer}/conf/flink-conf.yaml", "jobmanager.rpc.port: 6123\n")
        site.host.write(f"{newer}/lib/flink-dist-1.20.5.jar", "")
        site.host.succeed("sh", "-ec", f"cp -a {HOME}/plugins {newer}; mv {HOME} {HOME}-2.3; ln -s {HOME}-2.3 {HOME}")
        assert site.play().must_succeed().changed == [WRITE_DOWN, FORGET]  # the file is another one by its path
        site.host.succeed("ln", "-sfn", newer, HOME)

        site.play().must_succeed()

        assert site.text(f"{HOME}-2.3/conf/config.yaml") == OPERATORS
        settings = site.text(FLAT)
        assert settings.startswith(
            "jobmanager.rpc.port: 6123\nexternal-resources: gpu\nexternal-resource.gpu.amount: 2\n"
        )
        assert (
            site.play(flink_gpu_conf_dir=f"{newer}//conf/", flink_gpu_flink_version="1.20").must_succeed().changed == []
        )

        site.play(flink_gpu_conf_dir="").must_succeed()

        assert site.text(FLAT) == "jobmanager.rpc.port: 6123\n"
        site.host.succeed("ln", "-sfn", f"{HOME}-2.3", HOME)

    def test_what_an_operator_has_written_since_under_that_name_is_left(self, site: Site) -> None:
        fpga = [{"name": "fpga", "amount": 1, "driver_class": "org.example.Fpga"}]
        site.play(flink_gpu_extra_resources=fpga).must_succeed()
        site.host.succeed("sed", "-i", "s/org.example.Fpga/org.example.Mine/", FILE)

        told = site.play(flink_gpu_extra_resources=[]).must_succeed()

        assert "config.yaml: a resource there was changed by somebody else since, and is left" in told.stdout
        assert "org.example.Mine" in site.text()
        site.host.write(FILE, OPERATORS)

    def test_a_removal_by_force_leaves_what_can_not_be_edited(self, site: Site) -> None:
        site.play().must_succeed()
        broken = f"{MERGED}taskmanager: again\n"
        site.host.write(FILE, broken)

        removed = site.play("remove", flink_gpu_force=True).must_succeed()

        assert site.text() == broken
        assert (
            f"leave {HOME}-2.3/conf/config.yaml: line" in removed.named("absent | Tell what was done, or would be").msg
        )
        assert site.host.run("test", "-e", "/opt/flink-gpu-discovery").code == 1


def test_a_taskmanager_that_runs_with_older_settings_is_named_until_it_is_restarted(site: Site) -> None:
    unit: dict[str, Any] = {"flink_gpu_taskmanager_units": [UNIT]}
    managers = TaskManagers(site.host, plain=True)
    managers.write(UNIT)
    site.play(**unit).must_succeed()
    managers.restart(UNIT)
    assert site.play(**unit).must_succeed().changed == []

    changed = site.play(**unit, flink_gpu_amount=1).must_succeed()

    assert f"{UNIT}: {OUTDATED}" in changed.stdout
    assert site.report(**unit, flink_gpu_amount=1)["outdated"] == [UNIT]
    managers.restart(UNIT)
    assert site.report(**unit, flink_gpu_amount=1)["outdated"] == []
    managers.close()


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"flink_gpu_conf_dir": "/opt/none"}, "/opt/none is no folder here"),
        ({"flink_gpu_conf_dir": "/opt/link"}, "and is a link to /opt/flink/conf, which is not followed"),
        ({"flink_gpu_conf_dir": "/opt"}, "/opt: neither config.yaml nor flink-conf.yaml is there"),
        ({"flink_gpu_flink_version": "1.20"}, "flink_gpu_flink_version is '1.20', but Flink 2.3.0 lies there"),
        (
            {"flink_gpu_conf_format": "flink-conf"},
            "flink_gpu_conf_format is 'flink-conf', but Flink 2.3.0 reads config.yaml alone",
        ),
    ],
    ids=["folder", "link", "files", "version", "format"],
)
class TestRefusals:
    """Nothing is made where there was nothing."""

    def test_what_does_not_fit_the_host_is_refused(self, site: Site, variables: dict[str, Any], told: str) -> None:
        (failure,) = site.play(**variables).failures

        assert told in failure
        assert differences(site.before, snapshot(site.host)) == {}
