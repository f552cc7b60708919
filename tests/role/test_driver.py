"""What the role does around the driver, where it is asked to: holds its packages, keeps it awake."""

from __future__ import annotations

import pytest

from tests.booted.host import BootedHost
from tests.role.fleet import GROUP, VARIABLES, prepare_gpus
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

DRIVER, HELD_BEFORE, OTHER = "nvidia-driver-535", "libnvidia-compute-535", "libours1"
SERVICE = "nvidia-persistenced.service"
# Packages of nothing, by the names of a driver's and of something else's.
PACKAGES = f"""\
cd "$(mktemp -d)"
for name in {DRIVER} {HELD_BEFORE} {OTHER}; do
  mkdir -p "$name/DEBIAN"
  printf '%s\\n' "Package: $name" 'Version: 535.1' 'Architecture: all' 'Maintainer: nobody' 'Description: nothing' \\
    >"$name/DEBIAN/control"
  dpkg-deb --build "$name" >/dev/null
done
dpkg --install ./*.deb
apt-mark hold {HELD_BEFORE}
"""
UNIT = """\
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""


def held(host: BootedHost) -> set[str]:
    return set(host.succeed("apt-mark", "showhold").split())


def persistence(host: BootedHost) -> tuple[str, str]:
    """Whether the service is enabled, and whether it runs."""
    enabled, active = (host.run("systemctl", verb, SERVICE).out.strip() for verb in ("is-enabled", "is-active"))
    return enabled, active


class TestDriver:
    """In the order of a host's life."""

    @pytest.fixture(autouse=True)
    def _take(self, control: ControlNode, host: BootedHost) -> None:
        self.control, self.host = control, host

    def play(self, *, hold: bool, persistenced: bool, playbook: str = "site") -> Outcome:
        asked = {"flink_gpu_hold_driver": hold, "flink_gpu_persistenced": persistenced}
        outcome = self.control.play(
            f"flinkops.gpu.{playbook}", [self.host], variables={**VARIABLES, **asked}, group=GROUP
        )
        return outcome.must_succeed()

    def test_the_driver_is_held_and_kept_awake(self) -> None:
        prepare_gpus(self.host)
        self.host.succeed("sh", "-ec", PACKAGES)
        self.host.unit(SERVICE, UNIT)
        self.play(hold=True, persistenced=True)
        assert held(self.host) == {DRIVER, HELD_BEFORE}
        assert persistence(self.host) == ("enabled", "active")

    def test_switching_off_the_hold_ends_no_hold_of_the_operators_and_changes_nothing_else(self) -> None:
        outcome = self.play(hold=False, persistenced=True)
        assert outcome.changed == ["unmake | Stop holding driver packages", "unmake | Forget them"]
        assert held(self.host) == {HELD_BEFORE}
        assert persistence(self.host) == ("enabled", "active")

    def test_switching_off_persistence_mode_stops_the_service(self) -> None:
        self.play(hold=True, persistenced=False)
        assert held(self.host) == {DRIVER, HELD_BEFORE}
        assert persistence(self.host) == ("disabled", "inactive")

    def test_removal_ends_the_hold(self) -> None:
        self.play(hold=True, persistenced=False, playbook="remove")
        assert held(self.host) == {HELD_BEFORE}
        assert persistence(self.host) == ("disabled", "inactive")

    def test_a_service_that_the_operator_had_enabled_stays_so(self) -> None:
        self.host.succeed("systemctl", "enable", SERVICE)
        self.play(hold=False, persistenced=True)
        assert persistence(self.host) == ("enabled", "active")
        self.play(hold=False, persistenced=True, playbook="remove")
        assert persistence(self.host) == ("enabled", "active")
