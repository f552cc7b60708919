"""A host of its own that boots systemd as PID 1: a container on the real kernel, with the cgroups that a test wants."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from tests.booted import hand, installation
from tests.booted.engine import Layout, check_layout, prepare
from tests.isolation.installation import prepare_release
from tests.support.script import Result

_HOLDER = Path(__file__).with_name("host.sh")
_HAND = Path(hand.__file__)
_BOOT_SECONDS = 60.0
_END_SECONDS = 60.0
_UP = ("running", "degraded")
_serial = itertools.count(1)


class BootError(Exception):
    """A host that should boot here does not."""


class LeftoverError(Exception):
    """Something of a host could not be removed."""


class ContainerHost:
    """A host that is up, as a container of that name: ``host.run("systemctl", "status")``. ``detach`` when done.

    ``engine`` is the command that knows the container, and ``environment`` what it needs; ``container`` is its id.
    """

    def __init__(self, name: str, layout: Layout, engine: str, environment: Mapping[str, str]) -> None:
        self.name = name
        self.layout: Layout = layout
        self._engine = engine
        self._environment = environment
        self._hand: subprocess.Popen[str] | None = None

    def attach(self) -> None:
        """Begin to carry out commands there."""
        self._hand = self._begin_hand()
        pid, self.container = self._inspect("{{.State.Pid}} {{.Id}}").split()
        self._pids = Path(f"/proc/{int(pid)}/ns/pid").readlink()

    def detach(self) -> None:
        """Carry out no more; the host stays up."""
        if self._hand is not None:
            self._hand.communicate(timeout=_END_SECONDS)
            self._hand = None

    def run(self, *words: str, user: str | None = None, seconds: float = 20) -> Result:
        """One command from start to end, as root unless a user is named; it is in none of systemd's units."""
        request = {"words": words, "user": user or "root", "seconds": seconds}
        assert self._hand is not None
        assert self._hand.stdin is not None
        assert self._hand.stdout is not None
        self._hand.stdin.write(f"{json.dumps(request)}\n")
        self._hand.stdin.flush()
        line = self._hand.stdout.readline()
        assert line, f"{self.name} carries out no commands any more: {self._hand.communicate()[1]}"
        answer = json.loads(line)
        assert "error" not in answer, f"{' '.join(words)} on {self.name}: {answer['error']}"
        return Result(**answer)

    def succeed(self, *words: str, user: str | None = None, seconds: float = 20) -> str:
        """What a command prints that must end with 0."""
        done = self.run(*words, user=user, seconds=seconds)
        assert done.code == 0, f"{' '.join(words)} ended with {done.code} on {self.name}: {done.err}{done.out}"
        return done.out

    def copy_in(self, path: Path, to: str) -> None:
        """Copy a file, or a folder with all that is in it; ``to`` is its path there. Owner and mode stay."""
        done = self._call("cp", str(path), f"{self.name}:{to}", seconds=60)
        assert done.returncode == 0, done.stderr

    def write(self, path: str, text: str, mode: int = 0o644, *, then: str = "true") -> None:
        """Make root's file, with the folders above it, and run a command."""
        script = f'mkdir -p "$(dirname "$1")" && printf %s "$2" >"$1" && chmod "$3" "$1" && {then}'
        self.succeed("sh", "-c", script, "sh", path, text, f"{mode:o}")

    def unit(self, name: str, text: str) -> None:
        """Write a unit, or a drop-in by ``NAME.d/FILE.conf``, and let systemd read it."""
        self.write(f"/etc/systemd/system/{name}", text, then="systemctl daemon-reload")

    def install(self) -> None:
        """Set the program up by hand as docs/security.md says, with simulated GPUs that have device nodes."""
        with tempfile.TemporaryDirectory() as folder:
            self.copy_in(prepare_release(Path(folder)), installation.HOME)
        self.succeed("sh", "-ec", installation.COMMANDS)
        for path, (mode, text) in installation.FILES.items():
            self.write(path, text, mode)
        self.succeed("visudo", "-cf", installation.SUDOERS)
        self.reload_bus()

    def reload_bus(self) -> None:
        """Let the system bus read its policy again; that holds for present connections, too."""
        name = "org.freedesktop.DBus"
        self.succeed("busctl", "call", name, "/org/freedesktop/DBus", name, "ReloadConfig")

    def outer_pid(self, pid: int) -> int:
        """A process of the host as this machine numbers it."""
        for entry in Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or (entry / "ns/pid").readlink() != self._pids:
                    continue
                status = (entry / "status").read_text(encoding="utf-8")
            except OSError:  # it has ended
                continue
            if status.partition("\nNSpid:")[2].partition("\n")[0].split()[-1] == str(pid):
                return int(entry.name)
        raise ProcessLookupError(f"no process {pid} on {self.name}")

    def _begin_hand(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [self._engine, "exec", "--interactive", self.name, "python3", "-c", _HAND.read_text(encoding="utf-8")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=self._environment,
            text=True,
        )

    def _inspect(self, told: str) -> str:
        done = self._call("inspect", "--format", told, self.name, seconds=20)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _call(self, *words: str, seconds: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._engine, *words],
            capture_output=True,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=seconds,
            check=False,
        )


class BootedHost(ContainerHost):
    """``with BootedHost("v2") as host: host.run("systemctl", "status")``; nothing is left of it afterwards.

    ``layout``: ``v2`` has cgroup v2 alone; ``hybrid`` has what podman gives on a machine with both versions, ``v1`` the
    same without v2. It has this machine's network and kernel, and PIDs, users and files of its own. ``mounts`` shows
    folders of this machine in it, read-only. It ends when the test run does, in whatever way. ``runtime`` is the
    command below podman that knows it by its id.

    ``CannotBootError`` where none can be had, ``BootError`` if it should boot and does not.
    """

    def __init__(self, layout: Layout, *, suite: str = "bookworm", mounts: Mapping[Path, str] | None = None) -> None:
        check_layout(layout)
        engine = prepare(suite)
        super().__init__(f"flink-gpu-booted-{os.getpid()}-{next(_serial)}", layout, "podman", engine.environment)
        self._closed = False
        volumes = [f"--volume={path}:{inside}:ro" for path, inside in (mounts or {}).items()]
        self._holder = subprocess.Popen(
            [str(_HOLDER), self.name, engine.image, layout, *volumes],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=engine.environment,
            start_new_session=True,
            text=True,
        )
        try:
            self._start()
            self.attach()
            self.runtime = self._inspect("{{.OCIRuntime}}").strip()
            self._wait()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Remove the host; ``LeftoverError`` if something stays."""
        if self._closed:
            return
        self._closed = True
        _, errors = self._holder.communicate(timeout=_END_SECONDS)
        self.detach()
        if self._holder.returncode != 0:
            raise LeftoverError(f"{self.name}: {errors.strip()}")

    def _start(self) -> None:
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != "ready\n":
            self._closed = True
            _, errors = self._holder.communicate(timeout=_END_SECONDS)
            raise BootError(f"{self.name} can't be started: {errors.strip()}")

    def _wait(self) -> None:
        """Until systemd has booted; ``degraded`` will do, since a container lacks some of a machine's devices."""
        end = time.monotonic() + _BOOT_SECONDS
        while (state := self.run("systemctl", "is-system-running").out.strip()) not in _UP:
            if time.monotonic() > end:
                raise BootError(f"{self.name} has not booted in {_BOOT_SECONDS} s, it is {state!r}")
            time.sleep(0.1)

    def __enter__(self) -> BootedHost:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
