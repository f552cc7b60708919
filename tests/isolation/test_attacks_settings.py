"""The root program's settings: whose they must be, and the limits in them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import FLINK, OTHER, SETTINGS, Lab
from tests.isolation.privileged_calls import ASK, HOME, ONE_VIEW, SUDO, held, home, opens, refused, unchanged

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

HEAD = "[flink-gpu-discovery]\n"


@pytest.mark.parametrize(
    ("uid", "mode"), [(FLINK, 0o644), (OTHER, 0o600), (0, 0o664), (0, 0o646), (0, 0o666), (0, 0o622)]
)
def test_settings_that_others_may_write_are_refused(host: Lab, executor: Agent, uid: int, mode: int) -> None:
    host.settings(HEAD)
    host.path(SETTINGS).chmod(mode)
    os.chown(host.path(SETTINGS), uid, 0)
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 78, SETTINGS, "chown root:root")


def test_settings_in_a_folder_that_others_may_write_are_refused(host: Lab, executor: Agent) -> None:
    host.settings(HEAD)
    host.path("/etc").chmod(0o775)
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 77, "/etc ")


def link_settings(host: Lab, target: str) -> None:
    host.path(SETTINGS).symlink_to(target)


def test_a_link_to_settings_of_somebody_else_is_refused(host: Lab, executor: Agent) -> None:
    (home(host) / "conf").write_text(HEAD, encoding="ascii")
    os.chown(home(host) / "conf", FLINK, FLINK)
    link_settings(host, f"{HOME}/conf")
    done = executor.call(*SUDO, "allocate", "1")
    assert done.code in (77, 78)
    refused(host, executor, done, done.code)


def test_a_link_to_where_somebody_else_may_put_settings_is_refused(host: Lab, executor: Agent) -> None:
    (home(host) / "conf").write_text(HEAD, encoding="ascii")
    link_settings(host, f"{HOME}/conf")
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 78, HOME)


def test_a_link_that_passes_through_somebody_else_s_folder_is_refused(host: Lab, executor: Agent) -> None:
    host.path("/opt/safe").mkdir()
    host.path("/opt/safe/conf").write_text(HEAD, encoding="ascii")
    (home(host) / "way").symlink_to("/opt/safe")
    link_settings(host, f"{HOME}/way/conf")
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 78, HOME)


@pytest.mark.parametrize("target", ["/nowhere", SETTINGS, "/etc", "/dev/null", "/dev/zero"])
def test_a_link_to_no_settings_is_refused(host: Lab, executor: Agent, target: str) -> None:
    """Whatever the device says: it must neither hang nor be taken for an empty file that limits nothing."""
    link_settings(host, target)
    done = executor.call(*SUDO, "allocate", "1")
    assert done.code in (71, 77, 78), done
    unchanged(host, executor)


def test_a_pipe_in_their_place_is_refused_at_once(host: Lab, executor: Agent) -> None:
    os.mkfifo(host.path(SETTINGS), 0o600)
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 78, "not a regular file")


@pytest.mark.parametrize(
    "text",
    [
        "isolate = yes\n",
        f"{HEAD}unknown = 1\n",
        f"{HEAD}max-gpus-per-uid = 0\n",
        f"{HEAD}max-gpus-per-owner = many\n",
        f"{HEAD}resources = a b, c\n",
        f"{HEAD}resources =\n",
        f"{HEAD}deadline = 5\ndeadline = 5\n",
        f"{HEAD}ledger = relative\n",
        f"{HEAD}backend = magic\n",
        f"{HEAD}{HEAD}",
        f"{HEAD}# {'x' * 70_000}\n",
    ],
)
def test_settings_that_say_nothing_clear_are_refused(host: Lab, executor: Agent, text: str) -> None:
    host.settings(text)
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 78, SETTINGS)


def test_settings_that_are_no_text_are_refused(host: Lab, executor: Agent) -> None:
    host.settings("")
    host.path(SETTINGS).write_bytes(b"[flink-gpu-discovery]\n\xff\xfe\0")
    refused(host, executor, executor.call(*SUDO, "allocate", "1"), 78, SETTINGS)


def test_the_user_can_not_bring_settings_along(host: Lab, executor: Agent) -> None:
    conf: Path = home(host) / "conf"
    conf.write_text(f"{HEAD}isolate = yes\nresources = gpu, tpu\nbackend = simulated:9\n", encoding="ascii")
    done = executor.call(*ASK, "--config", f"{HOME}/conf")
    refused(host, executor, done, 64, "--config")


def test_an_owner_may_hold_no_more_than_its_limit(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}max-gpus-per-owner = 2\nresources = gpu, tpu\n")
    refused(host, executor, executor.call(SCRIPT, "3", "--isolate"), 77)
    assert executor.call(SCRIPT, "2", "--isolate").out == "0,1\n"
    for words in (("2", "--resource", "tpu"), ("1", "--resource", "tpu")):
        assert executor.call(SCRIPT, *words, "--isolate").code == 77
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})


def test_a_user_may_hold_no_more_than_its_limit(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}max-gpus-per-uid = 2\nresources = gpu, tpu\n")
    second, other = host.executor(), host.executor(OTHER)
    refused(host, executor, executor.call(SCRIPT, "3", "--isolate"), 77)
    assert executor.call(SCRIPT, "1", "--isolate").out == "0\n"
    assert second.call(SCRIPT, "2", "--isolate").code == 77
    assert executor.call(SCRIPT, "2", "--isolate", "--resource", "tpu").code == 77
    assert second.call(SCRIPT, "1", "--isolate").out == "0\n"
    assert executor.call(SCRIPT, "1", "--isolate", "--resource", "tpu").code == 77
    assert other.call(SCRIPT, "2", "--isolate").out == "0,1\n"
    assert held(host) == {executor.pid: "0", second.pid: "1", other.pid: "2,3"}
    assert [opens(agent) for agent in (executor, second, other)] == ["0", "1", "23"]


@pytest.mark.parametrize("name", ["tpu", "GPU", "gpu1", "-", "--isolate"])
def test_without_a_list_there_is_one_resource(host: Lab, executor: Agent, name: str) -> None:
    for text in (None, HEAD):
        if text:
            host.settings(text)
        done = executor.call(*SUDO, "allocate", "1", f"--resource={name}")
        assert (done.code in (64, 77), done.out) == (True, "")
    unchanged(host, executor)


def test_resources_that_are_listed_can_be_asked_for(host: Lab, executor: Agent) -> None:
    host.settings(f"{HEAD}resources = tpu, npu\n")
    refused(host, executor, executor.call(SCRIPT, "1", "--isolate"), 77, "tpu, npu")
    assert executor.call(SCRIPT, "1", "--isolate", "--resource", "npu").out == "0\n"
    assert executor.call(SCRIPT, "1", "--isolate", "--resource", "tpu").out == "1\n"
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})
