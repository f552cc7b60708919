"""What the role's tests rest on: playing, being killed, and the record of what each task did."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.booted.host import BootedHost
from tests.role.hosts import BOOKWORM, EVERY_KIND
from tests.role.outcome import Outcome
from tests.role.playing import PLAYBOOKS, ControlNode, PlayTimeoutError

pytestmark = [pytest.mark.booted, pytest.mark.timeout(60, func_only=True)]

FILE = "/etc/played"
PLAY = f"""\
- name: Try the harness
  hosts: managed
  gather_facts: false
  tasks:
    - name: Write it
      ansible.builtin.copy:
        content: "{{{{ text }}}}\\n"
        dest: {FILE}
        mode: "0644"
      notify: Say so
    - name: Leave it
      ansible.builtin.command: "false"
      when: false
    - name: Read each
      ansible.builtin.debug:
        msg: "{{{{ item }}}}"
      loop: [one, two]
    - name: Fail, which does no harm
      ansible.builtin.fail:
        msg: harmless
      ignore_errors: true
  handlers:
    - name: Say so
      ansible.builtin.command: touch {FILE}.said
"""
FAILING = """\
- hosts: managed
  gather_facts: false
  tasks:
    - name: Refuse
      ansible.builtin.assert:
        that: false
        fail_msg: never true
"""
SLEEPING = """\
- hosts: managed
  gather_facts: false
  tasks:
    - name: Sleep
      ansible.builtin.command: sleep 600
"""


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    """The play above, in a file."""
    return written(tmp_path, PLAY)


def written(folder: Path, text: str) -> Path:
    path = folder / "playbook.yml"
    path.write_text(text)
    return path


@pytest.fixture(scope="class")
def outcomes(control: ControlNode, host: BootedHost, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """Of the play above on a fresh host: checked, played, and played again."""
    playbook = written(tmp_path_factory.mktemp("play"), PLAY)
    variables = {"text": "hello"}
    checked = control.play(playbook, [host], check=True, diff=True, variables=variables).must_succeed()
    assert host.run("ls", FILE).code != 0
    return [checked, *(control.play(playbook, [host], variables=variables).must_succeed() for _ in range(2))]


class TestOutcome:
    """What can be told of these three runs."""

    def test_the_second_run_changes_nothing(self, outcomes: list[Outcome], host: BootedHost) -> None:
        assert [outcome.changed for outcome in outcomes] == [["Write it"], ["Write it", "Say so"], []]
        assert host.succeed("cat", FILE) == "hello\n"

    def test_each_result_tells_how_its_task_ended(self, outcomes: list[Outcome], host: BootedHost) -> None:
        told = [
            (result.task, result.status, result.ignored, result.handler, result.msg) for result in outcomes[1].results
        ]
        assert told[1:] == [
            ("Leave it", "skipped", False, False, ""),
            ("Read each", "ok", False, False, "All items completed\none\ntwo"),
            ("Fail, which does no harm", "failed", True, False, "harmless"),
            ("Say so", "changed", False, True, ""),
        ]
        first = outcomes[1].results[0]
        assert (first.host, first.action, first.status) == (host.name, "ansible.builtin.copy", "changed")
        assert 0 < first.seconds < outcomes[1].seconds
        assert [(outcome.tasks, outcome.failures) for outcome in outcomes] == [(3, []), (4, []), (3, [])]
        assert outcomes[1].of("elsewhere").tasks == 0

    def test_a_diff_shows_what_a_check_would_change(self, outcomes: list[Outcome]) -> None:
        (diff,) = outcomes[0].diffs["Write it"]
        assert (diff["before"], diff["after"]) == ("", "hello\n")
        assert outcomes[1].diffs == {}


def test_a_failure_tells_its_message(control: ControlNode, host: BootedHost, tmp_path: Path) -> None:
    outcome = control.play(written(tmp_path, FAILING), [host])
    assert (outcome.rc, outcome.failures) == (2, ["never true"])
    with pytest.raises(AssertionError, match="never true"):
        outcome.must_succeed()


def test_a_killed_play_ends_before_its_nth_task(control: ControlNode, host: BootedHost, playbook: Path) -> None:
    outcome = control.play(playbook, [host], variables={"text": "hello"}, kill_at=3)
    assert outcome.killed
    assert [result.task for result in outcome.results] == ["Write it", "Leave it"]
    assert (host.run("ls", FILE).code, host.run("ls", f"{FILE}.said").code) == (0, 2)


def test_a_killed_play_leaves_no_worker_of_another_host(control: ControlNode, host: BootedHost, tmp_path: Path) -> None:
    with BootedHost(BOOKWORM.layout) as other:
        outcome = control.play(written(tmp_path, SLEEPING), [host, other], kill_at=2)
    assert (outcome.killed, outcome.results) == (True, ())
    assert control.processes() == []


def test_a_play_that_does_not_end_in_time_is_killed(control: ControlNode, host: BootedHost, tmp_path: Path) -> None:
    with pytest.raises(PlayTimeoutError, match="Sleep"):
        control.play(written(tmp_path, SLEEPING), [host], seconds=3)
    assert control.processes() == []


def test_several_hosts_are_played_at_once(control: ControlNode, host: BootedHost) -> None:
    with BootedHost(BOOKWORM.layout) as other:
        outcome = control.play(PLAYBOOKS / "facts.yml", [host, other]).must_succeed()
    assert [outcome.of(one.name).tasks for one in (host, other)] == [1, 1]


@pytest.mark.parametrize("host", EVERY_KIND, indirect=True, ids=str)
def test_facts_are_gathered_on_every_kind_of_host(control: ControlNode, host: BootedHost) -> None:
    outcome = control.play(PLAYBOOKS / "facts.yml", [host]).must_succeed()
    assert outcome.tasks == 1
    assert "[WARNING]" not in outcome.stderr


def test_the_collection_is_the_installed_one(collection: Path) -> None:
    installed = collection / "ansible_collections/flinkops/gpu"
    assert (installed / "MANIFEST.json").is_file()
    assert not [name for name in ("tests", "tools", ".venv", "Makefile") if (installed / name).exists()]
