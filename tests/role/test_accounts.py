"""A removal takes the users and groups that the role made, no others, and no group that somebody still needs."""

from __future__ import annotations

import pytest

from tests.booted.host import BootedHost
from tests.role.fleet import GROUP, VARIABLES, prepare_gpus
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

SITE, REMOVE = "flinkops.gpu.site", "flinkops.gpu.remove"
TOLD = "absent | Tell what was done, or would be"
FIRST = "users | Make the group"


def play(control: ControlNode, host: BootedHost, playbook: str, **more: object) -> Outcome:
    check, kill_at = bool(more.pop("check", False)), int(str(more.pop("kill_at", 0)))
    variables = {**VARIABLES, **more}
    return control.play(playbook, [host], check=check, kill_at=kill_at, variables=variables, group=GROUP)


def known(host: BootedHost, kind: str, *names: str) -> list[str]:
    """Those of the names that are in this database."""
    return [name for name in names if host.run("getent", kind, name).code == 0]


class TestAccounts:
    """On one host, which has none of them before and after each test."""

    @pytest.fixture(autouse=True)
    def gpus(self, host: BootedHost) -> None:
        prepare_gpus(host)

    @pytest.mark.parametrize(
        "by_hand", ["groupadd --system flink; useradd --system -g flink flink", "useradd -m flink"]
    )
    def test_what_was_made_by_hand_after_a_run_was_killed_stays(
        self, control: ControlNode, host: BootedHost, by_hand: str
    ) -> None:
        tasks = [result.task for result in play(control, host, SITE, check=True).results]
        assert play(control, host, SITE, kill_at=tasks.index(FIRST) + 1).killed
        host.succeed("sh", "-ec", by_hand)
        before = host.succeed("cat", "/etc/passwd", "/etc/group")
        play(control, host, SITE, flink_gpu_create_user=False).must_succeed()
        removal = play(control, host, REMOVE).must_succeed()
        assert host.succeed("cat", "/etc/passwd", "/etc/group") == before
        assert "leave user flink: its comment is '', not 'made by flinkops.gpu'" in removal.named(TOLD).msg
        assert "leave group flink 300: its gid is " in removal.named(TOLD).msg
        host.succeed("userdel", "flink")

    def test_all_that_is_recorded_counts_whatever_todays_variables_are(
        self, control: ControlNode, host: BootedHost
    ) -> None:
        """One works, one is gone already, one was given to people, and one needs the group."""
        extra = ["busy", "gone", "given"]
        play(control, host, SITE, flink_gpu_extra_users=extra).must_succeed()
        host.succeed("sh", "-ec", "userdel gone; usermod -d /home/given given; useradd -g flink bob")
        host.succeed("systemd-run", "--unit=work", "--uid=busy", "sleep", "infinity")
        (refusal,) = play(control, host, REMOVE).failures
        assert refusal.startswith("user busy, which was made by the role, has processes;")
        host.succeed("systemctl", "stop", "work")
        said = play(control, host, REMOVE).must_succeed().named(TOLD).msg
        assert known(host, "passwd", "flink", *extra, "bob") == ["given", "bob"]
        assert known(host, "group", "flink") == ["flink"]
        assert "leave user gone: there is none any more" in said
        assert "leave user given: its home is '/home/given', not '/nonexistent'" in said
        assert "leave group flink 300: it is the primary group of given, bob" in said
        assert play(control, host, REMOVE).must_succeed().changed == []
        host.succeed("sh", "-ec", "userdel given; userdel bob; groupdel flink")
