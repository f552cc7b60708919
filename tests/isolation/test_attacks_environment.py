"""Nothing of the caller's environment reaches the code that runs as root."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.isolation.agent import Agent
from tests.isolation.installation import ROOT_SCRIPT, sudo_rules
from tests.isolation.lab import USERS, Lab
from tests.isolation.privileged_calls import (
    ASK,
    CARDS,
    HOME,
    ONE_VIEW,
    SUDO,
    HeldLock,
    held,
    home,
    opens,
    waiting_helper,
)
from tests.standins.nvml.scenario import Gpu, Scenario, write

pytestmark = pytest.mark.parametrize("view", ONE_VIEW, indirect=True)

MARK = f"{HOME}/mark"
# What Python would import early, or in the course of a call.
MODULES = (
    *("_signal", "ctypes", "encodings/__init__", "errno", "fcntl", "json", "os", "pynvml", "resource", "select"),
    *("sitecustomize", "stat", "struct", "time", "traceback", "usercustomize", "flink_gpu_discovery/__init__"),
)
_MODULE = f"import posix\nif posix.geteuid() == 0: posix.close(posix.open({MARK!r}, posix.O_CREAT | posix.O_WRONLY))\n"
_LIBRARY = f"""
#include <fcntl.h>
#include <unistd.h>
__attribute__((constructor)) static void leave_mark(void) {{
  if (getuid() == 0 && geteuid() == 0) close(open("{MARK}", O_CREAT | O_WRONLY, 0644));
}}
"""
_PROGRAM = f'#!/bin/sh\n[ "$(/usr/bin/id -u)" != 0 ] || echo "$0" >>{MARK}\n'
_LOAD = "import ctypes, json; ctypes.CDLL('libnvidia-ml.so.1')"
PLANTED = {
    "BASH_ENV": f"{HOME}/bin/python3",
    "ENV": f"{HOME}/bin/python3",
    "GCONV_PATH": HOME,
    "HOME": HOME,
    "LD_AUDIT": f"{HOME}/lib/mark.so",
    "LD_LIBRARY_PATH": f"{HOME}/lib",
    "LD_PRELOAD": f"{HOME}/lib/mark.so",
    "PATH": f"{HOME}/bin:/usr/bin:/bin",
    "PYTHONBREAKPOINT": "sitecustomize.x",
    "PYTHONEXECUTABLE": f"{HOME}/bin/python3",
    "PYTHONHOME": f"{HOME}/modules",
    "PYTHONINSPECT": "1",
    "PYTHONPATH": f"{HOME}/modules",
    "PYTHONPLATLIBDIR": f"{HOME}/modules",
    "PYTHONPYCACHEPREFIX": f"{HOME}/modules",
    "PYTHONSTARTUP": f"{HOME}/modules/sitecustomize.py",
    "PYTHONUSERBASE": f"{HOME}/modules",
    "PYTHONWARNINGS": "error",
    "TMPDIR": HOME,
}
DEFAULTS = {
    "reset": "",
    "not reset": "Defaults !env_reset, !secure_path\n",
    "kept": f'Defaults env_keep += "{" ".join(PLANTED)}", !secure_path\n',
}


@pytest.fixture
def host(lab: Lab) -> Lab:
    lab.nvidia(*CARDS)
    plant(home(lab))
    return lab


def plant(folder: Path) -> None:
    for name in MODULES:
        path = folder / "modules" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_MODULE, encoding="ascii")
    (folder / "bin").mkdir()
    for name in ("python3", "sudo", "nvidia-smi", "env", "sh"):
        (folder / "bin" / name).write_text(_PROGRAM, encoding="ascii")
        (folder / "bin" / name).chmod(0o755)
    (folder / "lib").mkdir()
    library = folder / "lib" / "mark.so"
    words = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
    subprocess.run(words, input=_LIBRARY, text=True, check=True, timeout=30)
    (folder / "lib" / "libnvidia-ml.so.1").symlink_to("mark.so")
    folder.chmod(0o777)


def unmarked(host: Lab) -> None:
    assert not host.path(MARK).exists(), host.path(MARK).read_text(encoding="utf-8")


def test_the_plants_would_leave_a_mark(host: Lab) -> None:
    for variable in ("PYTHONPATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "BASH_ENV"):
        words = ("/bin/bash", "-c", "true") if variable == "BASH_ENV" else ("/usr/bin/python3", "-c", _LOAD)
        host.run(*words, env={variable: PLANTED[variable]})
        assert host.path(MARK).exists(), variable
        host.path(MARK).unlink()


@pytest.mark.parametrize("defaults", [*DEFAULTS])
def test_nothing_that_is_planted_runs(host: Lab, executor: Agent, defaults: str) -> None:
    host.sudoers(DEFAULTS[defaults] + sudo_rules(tuple(USERS)))
    done = executor.call(*SUDO, "allocate", "2", env=PLANTED)
    unmarked(host)
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert (opens(executor), held(host)) == ("01", {executor.pid: "0,1"})
    executor.call(*SUDO, "status", env=PLANTED)
    executor.call(*SUDO, "allocate", "x", env=PLANTED)
    unmarked(host)


def test_nothing_that_is_planted_runs_behind_the_launcher(host: Lab, executor: Agent) -> None:
    harmless = {name: value for name, value in PLANTED.items() if not name.startswith("LD_")}
    assert executor.call(*ASK, env=harmless).out == "0,1\n"
    unmarked(host)


@pytest.mark.parametrize("defaults", [*DEFAULTS])
def test_what_runs_as_root_has_a_small_environment_of_its_own(host: Lab, executor: Agent, defaults: str) -> None:
    """A driver's library reads variables, too: the stand-in takes its scenario from one."""
    keep = 'Defaults env_keep += "STANDIN_NVML_SCENARIO"\n' if defaults == "kept" else ""
    host.sudoers(DEFAULTS[defaults] + keep + sudo_rules(tuple(USERS)))
    write(
        Scenario(tuple(Gpu(f"GPU-{index:08x}-0000-4000-8000-0000000000ff") for index in range(9))), home(host) / "nine"
    )
    (home(host) / "nine").chmod(0o644)
    done = executor.call(*SUDO, "allocate", "5", env={"STANDIN_NVML_SCENARIO": f"{HOME}/nine"})
    assert (done.code, "4" in done.err) == (69, True), done


def test_the_launcher_hands_on_nothing(host: Lab, executor: Agent) -> None:
    host.sudoers("Defaults !env_reset\n" + sudo_rules(tuple(USERS)))
    with HeldLock(host):
        call = executor.start(*ASK, env={"SPECIAL": "1", "LC_ALL": "de_DE", "LANG": "de_DE", "MALLOC_PERTURB_": "1"})
        helper = waiting_helper(host)
        content = Path(f"/proc/{helper}/environ").read_text(encoding="utf-8")
    names = {line.partition("=")[0] for line in content.split("\0")}
    assert not names & {"SPECIAL", "LANG", "MALLOC_PERTURB_"}
    assert "LC_ALL=C\0" in content
    assert call.finish().code == 0


@pytest.mark.parametrize("variable", ["LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH"])
def test_variables_on_sudo_s_command_line_are_refused(host: Lab, executor: Agent, variable: str) -> None:
    done = executor.call("/usr/bin/sudo", "-n", f"{variable}={PLANTED[variable]}", *SUDO[2:], "allocate", "2")
    assert (done.code, "not allowed to set the following environment variables" in done.err) == (1, True)
    unmarked(host)
    assert held(host) == {}


def test_setenv_would_let_a_library_in(host: Lab, executor: Agent) -> None:
    """Why the line in sudoers says NOSETENV: no program can defend itself against what is loaded before it."""
    host.sudoers(f"flink ALL=(root) NOPASSWD: SETENV: {ROOT_SCRIPT}\n")
    executor.call("/usr/bin/sudo", "-n", f"PYTHONPATH={PLANTED['PYTHONPATH']}", *SUDO[2:], "status")
    unmarked(host)
    executor.call("/usr/bin/sudo", "-n", f"LD_PRELOAD={PLANTED['LD_PRELOAD']}", *SUDO[2:], "status")
    assert host.path(MARK).exists()
