"""The ledgers' folder through changes of mode and owner, and what is refused while somebody holds GPUs by it."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from tests.booted.host import BootedHost
from tests.booted.installation import HOME
from tests.isolation.installation import CURRENT, SCRIPT
from tests.role.fleet import GROUP, ISOLATED, VARIABLES, differences, prepare_gpus, snapshot
from tests.role.outcome import Outcome
from tests.role.playing import ControlNode

pytestmark = [pytest.mark.booted, pytest.mark.timeout(120, func_only=True)]

SITE, REMOVE, VERIFY = (f"flinkops.gpu.{name}" for name in ("site", "remove", "verify"))
RUN = "/run/flink-gpu-discovery"
LEDGER, TMPFILES = f"{RUN}/ledger", "/etc/tmpfiles.d/flink-gpu-discovery.conf"
HOLDER = "holder.service"
# As README has it, but for the script: it may lie anywhere.
BY_HAND = f"""\
useradd flink
echo 'd {RUN} 0770 flink flink' >{TMPFILES}
systemd-tmpfiles --create flink-gpu-discovery.conf
"""


class Site(NamedTuple):
    """A host without isolation; each test leaves it installed, with nobody who holds GPUs."""

    control: ControlNode
    host: BootedHost

    def play(self, playbook: str, variables: dict[str, object] = VARIABLES, **more: object) -> Outcome:
        return self.control.play(playbook, [self.host], variables={**variables, **more}, group=GROUP)

    def refused(self, playbook: str, variables: dict[str, object] = VARIABLES, **more: object) -> str:
        """The message; nothing is changed."""
        before = snapshot(self.host)
        outcome = self.play(playbook, variables, **more)
        assert (outcome.changed, differences(before, snapshot(self.host))) == ([], {})
        (message,) = outcome.failures
        return message

    def hold(self, user: str = "flink") -> int:
        """Start what stands for a TaskManager with two GPUs; its PID."""
        answer = f"/run/{HOLDER}.answer"
        self.host.succeed("install", "-o", user, "/dev/null", answer)
        script = f"{SCRIPT} 2 >{answer} 2>&1; exec sleep infinity"
        words = ("systemd-run", "--quiet", "--collect", f"--uid={user}", f"--unit={HOLDER}")
        self.host.succeed(*words, "sh", "-c", script)
        told = self.host.succeed(
            "timeout", "10", "sh", "-c", f"until [ -s {answer} ]; do sleep 0.05; done; cat {answer}"
        )
        assert told == "0,1\n"
        return int(self.host.succeed("systemctl", "show", "-P", "MainPID", HOLDER))

    def release(self) -> None:
        self.host.succeed("sh", "-c", f"systemctl stop {HOLDER} && {SCRIPT} reclaim")

    def owner(self, path: str) -> str:
        return self.host.succeed("stat", "-c", "%U:%G %a", path).strip()


@pytest.fixture(scope="class")
def site(control: ControlNode, host: BootedHost) -> Site:
    prepare_gpus(host)
    site = Site(control, host)
    site.play(SITE).must_succeed()
    return site


class TestLedger:
    """In the order of a host's life."""

    def test_holders_count_also_where_nothing_is_left_to_read_their_ledger(self, site: Site) -> None:
        pid = site.hold()
        site.host.succeed("mv", CURRENT, "/root/current")
        told = (
            f"{LEDGER} is there, but {CURRENT}/bin/flink-gpu-discovery, which could tell who holds GPUs by it, is not"
        )
        assert site.refused(REMOVE).startswith(told)
        message = site.refused(SITE, ISOLATED)
        assert message.startswith(told)
        assert message.endswith("; the host was in the other mode, so see to that before flink_gpu_isolation changes")
        site.play(SITE).must_succeed()
        records = json.loads(site.host.succeed(SCRIPT, "status", "--json"))["records"]
        assert {record["owner"]["pid"] for record in records} == {pid}
        site.release()

    def test_another_user_gets_the_ledger_but_not_from_one_who_holds_gpus(self, site: Site) -> None:
        pid = site.hold()
        assert site.refused(SITE, flink_gpu_user="flunk", flink_gpu_group="flunk") == (
            f"flink_gpu_user:flink_gpu_group is flunk:flunk, but {RUN} is of flink:flink,"
            f" and pid {pid} holds GPUs; stop all TaskManagers before it changes"
        )
        site.release()
        site.play(SITE, flink_gpu_user="flunk", flink_gpu_group="flunk").must_succeed()
        assert [site.owner(path) for path in (RUN, LEDGER, f"{LEDGER}.lock")] == [
            "flunk:flunk 770",
            "flunk:flunk 660",
            "flunk:flunk 660",
        ]
        site.hold("flunk")
        site.release()
        site.play(SITE).must_succeed()

    def test_a_user_who_does_not_share_the_ledger_is_refused_and_reported(self, site: Site) -> None:
        site.host.succeed("useradd", "eve")
        assert site.refused(SITE, flink_gpu_extra_users=["eve"]) == (
            "flink_gpu_extra_users: eve is not in the group flink, which shares the ledger; usermod -aG flink eve"
        )
        outcome = site.play(VERIFY, flink_gpu_extra_users=["eve"])
        (problem,) = json.loads(outcome.named("Report on the host").msg)["problems"]
        assert problem.startswith("as eve: ledger: ")
        site.host.succeed("usermod", "-aG", "flink", "eve")
        site.play(SITE, flink_gpu_extra_users=["eve"]).must_succeed()
        site.hold("eve")
        site.release()

    def test_what_the_user_put_in_the_way_of_isolation_goes(self, site: Site) -> None:
        site.host.succeed("sh", "-c", f"mkdir {RUN}/root && touch {RUN}/root/ledger", user="flink")
        site.play(SITE, ISOLATED).must_succeed()
        assert site.host.run(SCRIPT, "status", "--json", user="flink").code == 0
        assert site.play(SITE, ISOLATED).must_succeed().changed == []
        site.play(SITE).must_succeed()

    def test_a_damaged_record_is_a_problem_in_the_report(self, site: Site) -> None:
        record = f"{HOME}/record.json"
        site.host.succeed("cp", "-p", record, "/root/record.json")
        site.host.write(record, "half of it", mode=0o600)
        outcome = site.play(VERIFY)
        (problem,) = json.loads(outcome.named("Report on the host").msg)["problems"]
        assert problem.startswith(f"the record {record} is damaged")
        assert site.refused(SITE) == problem
        assert site.refused(REMOVE) == problem
        site.host.succeed("cp", "-p", "/root/record.json", record)

    def test_the_folder_of_a_set_up_by_hand_outlasts_the_role(self, site: Site) -> None:
        site.play(REMOVE).must_succeed()
        assert site.host.run("test", "-e", RUN).code == 1
        site.host.succeed("sh", "-ec", BY_HAND)
        before = snapshot(site.host)
        site.play(SITE).must_succeed()
        site.host.succeed("touch", f"{RUN}/notes", user="flink")
        site.play(SITE, ISOLATED).must_succeed()
        site.play(REMOVE).must_succeed()
        assert differences(before, snapshot(site.host)).keys() == {f"{RUN}/notes"}
        assert site.owner(RUN) == "flink:flink 770"
        assert site.play(REMOVE).must_succeed().changed == []
