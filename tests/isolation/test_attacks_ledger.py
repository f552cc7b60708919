"""A ledger that somebody else wrote: root reads it, and must do nothing that stands in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.hierarchies import WITH_V2
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, Lab
from tests.isolation.privileged_calls import CARDS, HOME, STATE, SUDO, home

pytestmark = pytest.mark.parametrize("view", WITH_V2, indirect=True)

RUN = "/run/flink-gpu-discovery"
VICTIM = "/etc/victim"
WORDS = "root:x:0:0\n"


@pytest.fixture
def host(lab: Lab) -> Lab:
    """Where GPUs are coordinated: the folder is the executors' own."""
    lab.nvidia(*CARDS)
    for folder in (RUN, STATE):
        lab.path(folder).mkdir()
        os.chown(lab.path(folder), FLINK, FLINK)
        lab.path(folder).chmod(0o770)
    lab.path(VICTIM).write_text(WORDS, encoding="ascii")
    home(lab)
    return lab


def plant(host: Lab, executor: Agent, ledger: str) -> None:
    """As the user: a record of its own whose cgroup leads out of the tree, to a link in the place of its door."""
    assert executor.call(SCRIPT, "1", "--coordinate", "--backend", "nvml", "--ledger", ledger).out == "0\n"
    assert executor.cgroup is not None
    top = executor.cgroup.inside_v2
    trap = f"{top}{'/..' * top.count('/')}{HOME}/trap"
    executor.evaluate(f"os.mkdir('{HOME}/trap'); os.symlink('{VICTIM}', '{HOME}/trap/cgroup.procs')\nresult = 0")
    text = host.path(ledger).read_text(encoding="utf-8")
    head, line, end = text.splitlines()
    fields = [*line.split("\t")[:-1], trap]
    executor.evaluate(f"open({ledger!r}, 'w').write({chr(10).join((head, chr(9).join(fields), end, ''))!r})")
    assert Path(f"{host.path('/')}{HOME}/trap").is_dir()


def test_the_root_program_does_not_act_on_somebody_else_s_records(host: Lab, executor: Agent) -> None:
    plant(host, executor, f"{STATE}/ledger")
    executor.call(*SUDO, "status")
    assert host.path(VICTIM).read_text(encoding="ascii") == WORDS
    for words in (("reclaim",), ("allocate", "1"), ("deallocateAll",)):
        assert executor.call(*SUDO, *words).code == 77
    assert host.path(VICTIM).read_text(encoding="ascii") == WORDS


def test_the_root_program_tells_nothing_of_files_that_only_root_may_read(host: Lab, executor: Agent) -> None:
    plant(host, executor, f"{STATE}/ledger")
    host.path(VICTIM).chmod(0o600)
    executor.kill()
    done = host.executor().call(*SUDO, "status")
    assert WORDS.strip() not in done.out + done.err


@pytest.mark.parametrize("words", [("status",), ("status", "--json"), ("reclaim",), ("1", "--check-dead")])
def test_root_does_not_act_on_records_of_a_shared_ledger(host: Lab, executor: Agent, words: tuple[str, ...]) -> None:
    plant(host, executor, f"{RUN}/ledger")
    host.run(SCRIPT, *words)
    assert host.path(VICTIM).read_text(encoding="ascii") == WORDS


def test_a_record_of_a_cgroup_outside_of_any_tree_harms_nobody(host: Lab, executor: Agent) -> None:
    plant(host, executor, f"{RUN}/ledger")
    executor.kill()
    done = host.run(SCRIPT, "reclaim")
    assert done.code in (0, 65), done
    assert WORDS.strip() not in done.err
