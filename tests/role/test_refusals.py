"""What is refused before anything is changed, on hosts in a state of their own.

Values that are refused are played by Molecule's scenario ``invalid_input``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.booted.host import BootedHost
from tests.booted.installation import HOME, SUDOERS
from tests.role.fleet import GROUP, ISOLATED, VARIABLES, differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

SITE = "flinkops.gpu.site"
VISUDO = "/usr/sbin/visudo"
REFUSED = f"{SUDOERS} was refused by '{VISUDO} -cf %s' (exit code 1: syntax error near line 3); nothing was changed"
ACCOUNTS = ("passwd", "shadow", "group", "gshadow")
UNITS = {
    "delegated.service": "User=flink\nDelegate=yes",
    "closed@.service": "User=flink\nNoNewPrivileges=yes\nPrivateDevices=yes",
    "foreign.service": "User=daemon",
}


def refused(control: ControlNode, host: BootedHost, variables: dict[str, Any]) -> str:
    """The message; nothing is changed, nor said to be."""
    outcome: Outcome = control.play(SITE, [host], variables=variables, group=GROUP)
    assert (outcome.rc, outcome.changed, len(outcome.failures)) == (2, [], 1)
    return outcome.failures[0]


@pytest.fixture(scope="class")
def prepared(host: BootedHost) -> BootedHost:
    """With a user who has no group of its own, and units that don't fit."""
    host.succeed("useradd", "--no-user-group", "flink")
    for name, lines in UNITS.items():
        host.unit(name, f"[Service]\n{lines}\nExecStart=/bin/true\n")
    return host


class TestRefusals:
    """On one host, on which nothing is installed, nor after any of them."""

    @pytest.fixture(autouse=True)
    def unchanged(self, prepared: BootedHost) -> Iterator[None]:
        """The host stays as it is, but for what a test puts there before and takes away after its play."""
        before = snapshot(prepared)
        yield
        assert differences(before, snapshot(prepared)) == {}

    def test_all_that_stands_in_the_way_is_named_at_once(self, control: ControlNode, host: BootedHost) -> None:
        variables = {
            **ISOLATED,
            "flink_gpu_create_user": False,
            "flink_gpu_extra_users": ["one", "two"],
            "flink_gpu_taskmanager_units": list(UNITS),
            "ansible_become": False,  # which Ansible itself needs sudo for
        }
        host.succeed("mv", "/usr/bin/sudo", VISUDO, "/root")
        said = refused(control, host, variables)
        host.succeed("sh", "-ec", f"mv /root/sudo /usr/bin; mv /root/visudo {VISUDO}")
        keeps = "keeps it from being confined (docs/security.md)"
        assert said.split("; ") == [
            "the users one, two do not exist",
            "make them, or set flink_gpu_create_user",
            "flink_gpu_isolation cgroup needs sudo and visudo, missing here",
            "install the package sudo, or set flink_gpu_install_packages",
            f"delegated.service: Delegate=yes {keeps}",
            f"closed@.service: NoNewPrivileges=yes {keeps}",
            f"closed@.service: PrivateDevices=yes {keeps}",
            "foreign.service: User=daemon is not among flink_gpu_user and flink_gpu_extra_users (flink, one, two)",
        ]

    def test_a_platform_whose_paths_are_unknown_is_named(self, control: ControlNode, host: BootedHost) -> None:
        host.write("/etc/arch-release", "")
        said = refused(control, host, VARIABLES)
        host.succeed("rm", "/etc/arch-release")
        assert said.endswith("is of the family Archlinux; known are Debian, RedHat and Suse")

    def test_a_damaged_record_stays_as_it_is(self, control: ControlNode, host: BootedHost) -> None:
        path = f"{HOME}/record.json"
        host.write(path, "half of it", mode=0o600)
        said = refused(control, host, VARIABLES)
        assert host.succeed("cat", path) == "half of it"
        host.succeed("rm", "-r", HOME)
        assert said.startswith(f"the record {path} is damaged")


def test_a_sudoers_file_that_visudo_refuses_never_lands(control: ControlNode, host: BootedHost) -> None:
    """Nor does anything beside it; one from an earlier installation stays."""
    prepare_gpus(host)
    host.write(VISUDO, "#!/bin/sh\necho 'syntax error near line 3'\nexit 1\n", mode=0o755)
    host.write(SUDOERS, "# Managed by Ansible: flinkops.gpu\n", mode=0o440)
    before = snapshot(host)
    outcome = control.play(SITE, [host], variables=ISOLATED, group=GROUP)
    assert outcome.failures == [REFUSED]
    landed = differences(before, snapshot(host)).keys() - {f"/etc/{name}" for name in ACCOUNTS}
    assert {path for path in landed if not path.startswith(HOME)} == set()
