"""Units by other names than their own, and options that keep a confinement from working though none says so."""

from __future__ import annotations

import json

import pytest

from tests.booted.host import BootedHost
from tests.role.fleet import GROUP, ISOLATED, differences, prepare_gpus, snapshot
from tests.role.hosts import BOOKWORM, TRIXIE
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

SITE, VERIFY = "flinkops.gpu.site", "flinkops.gpu.verify"
KEEPS = "keeps it from being confined (docs/security.md)"
UNITS = {
    "real.service": "User=flink\nDelegate=yes",
    "real@.service": "User=flink",
    "filtered.service": "User=flink\nSystemCallFilter=@system-service",
    "restricted.service": "User=flink\nRestrictSUIDSGID=yes\nLockPersonality=yes",
    "pool@.service": "User=flink",
}
ALIASES = {"tm.service": "real.service", "tm@.service": "real@.service"}


@pytest.fixture
def prepared(host: BootedHost) -> BootedHost:
    """With units as an operator has them; ``pool@1`` runs, ``real`` is enabled by an alias."""
    prepare_gpus(host)
    host.succeed("useradd", "flink")
    for name, lines in UNITS.items():
        host.unit(name, f"[Service]\n{lines}\nExecStart=/bin/sleep 600\n")
    for alias, name in ALIASES.items():
        host.succeed("ln", "-s", name, f"/etc/systemd/system/{alias}")
    host.succeed("systemctl", "mask", "off.service")
    host.succeed("systemctl", "start", "pool@1.service", "real.service")
    return host


@pytest.mark.parametrize("host", [BOOKWORM, TRIXIE], indirect=True, ids=str)
def test_an_alias_and_options_that_stand_in_the_way_are_refused_by_name(
    control: ControlNode, prepared: BootedHost
) -> None:
    """Before systemd 255 sudo fails with those options; since then the process is left capabilities."""
    units = [*ALIASES, "filtered.service", "restricted.service"]
    before = snapshot(prepared)

    outcome = control.play(SITE, [prepared], variables={**ISOLATED, "flink_gpu_taskmanager_units": units}, group=GROUP)

    assert differences(before, snapshot(prepared)) == {}
    (message,) = outcome.failures
    told = [part for part in message.split("; ") if not part.startswith("set that one")]
    filtered = [part for part in told if part.startswith("filtered.service: SystemCallFilter=")]
    assert len(filtered) == 1
    assert [part for part in told if part not in filtered] == [
        "tm.service: is another name of real.service",
        f"tm.service: Delegate=yes {KEEPS}",
        "tm@.service: is another name of real@.service",
        f"restricted.service: LockPersonality=yes {KEEPS}",
        f"restricted.service: RestrictSUIDSGID=yes {KEEPS}",
    ]


def test_what_is_running_is_found_once_and_by_any_name_and_a_masked_unit_is_no_missing_one(
    control: ControlNode, prepared: BootedHost
) -> None:
    units = ["tm.service", "pool@.service", "pool@1.service", "off.service"]
    outcome = control.play(
        VERIFY, [prepared], variables={**ISOLATED, "flink_gpu_taskmanager_units": units}, group=GROUP
    )
    report = json.loads(outcome.named("Report on the host").msg)
    assert report["running"] == ["real.service", "pool@1.service"]
    assert report["warnings"] == ["off.service: is masked, so systemd can't start it; see 'systemctl status'"]
