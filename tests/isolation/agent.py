"""Processes that stand for task executors and their workers, and do whatever an attacker might."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.isolation.cgroup import Cgroup, membership
from tests.support.script import Result

PYTHON = "/usr/bin/python3"

_SOURCE = Path(__file__).with_name("agent_process.py")
_SECONDS = 20.0


class AgentError(Exception):
    """What the agent was told to do raised an exception, whose text this is; or the agent is gone."""


class Agents:
    """Where agents call in: an abstract Unix socket, which every user and every cgroup reaches without a file."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind("\0" + name)
        self._listener.listen()
        self._listener.settimeout(_SECONDS)
        self._waiting: dict[int, socket.socket] = {}

    @property
    def words(self) -> tuple[str, ...]:
        """The command of an agent."""
        return PYTHON, "-IS", "-c", _SOURCE.read_text(encoding="utf-8"), self._name

    def connection(self, pid: int) -> socket.socket:
        """The agent with this PID; waits until it has called in."""
        while pid not in self._waiting:
            connection, _ = self._listener.accept()
            peer, _, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            self._waiting[peer] = connection
        return self._waiting.pop(pid)

    def close(self) -> None:
        """Hear no more agents."""
        for open_socket in (self._listener, *self._waiting.values()):
            open_socket.close()


class Call:
    """A command that an agent has begun as its child."""

    def __init__(self, agent: Agent, pid: int) -> None:
        self.pid = pid
        self._agent = agent

    def finish(self, seconds: float = _SECONDS) -> Result:
        """How it ended; ``AgentError`` if it does not in time."""
        return Result(*self._agent.evaluate(f"finish({self.pid}, {seconds})", seconds=seconds + 5))


class Agent:
    """A process that lives on, with two threads; ``evaluate`` is what all the rest is made of.

    ``cgroup`` is where it was started. It ends with the lab at the latest.
    """

    def __init__(
        self, agents: Agents, pid: int, cgroup: Cgroup | None, parent: Agent | subprocess.Popen[bytes]
    ) -> None:
        self.pid = pid
        self.cgroup = cgroup
        self._agents = agents
        self._parent = parent
        self._socket = agents.connection(pid)
        self._stream = self._socket.makefile("rwb")

    def evaluate(self, source: str, *, thread: bool = False, seconds: float = _SECONDS) -> Any:
        """Run Python in the process: the value of an expression, or what statements leave in ``result``, as JSON.

        Names stay from call to call; those of ``agent_process`` are there. With ``thread`` its second thread does it.
        """
        try:
            self._socket.settimeout(seconds)
            self._stream.write(json.dumps({"source": source, "thread": thread}).encode() + b"\n")
            self._stream.flush()
            line = self._stream.readline()
        except (OSError, ValueError) as error:  # ValueError: it was killed, so the stream is closed
            raise AgentError(f"agent {self.pid} does not answer: {error}") from error
        if not line:
            raise AgentError(f"agent {self.pid} has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise AgentError(f"agent {self.pid}: {answer['error']}")
        return answer["value"]

    def start(self, *words: str, env: dict[str, str] | None = None) -> Call:
        """Begin a command as its child; lets several agents call at once."""
        return Call(self, self.evaluate(f"start({list(words)!r}, {env or {}!r})"))

    def call(self, *words: str, env: dict[str, str] | None = None, seconds: float = _SECONDS) -> Result:
        """One command from start to end."""
        return self.start(*words, env=env).finish(seconds)

    def try_open(self, path: str, flags: int = os.O_RDWR, *, thread: bool = False) -> str:
        """``opened``, or the name of the error: ``EPERM`` from a device cgroup, ``ENXIO`` where no driver is."""
        return str(self.evaluate(f"try_open({path!r}, {flags})", thread=thread))

    def thread_try_open(self, path: str, flags: int = os.O_RDWR) -> str:
        """The same, in a thread that was there before whatever happened to the process."""
        return self.try_open(path, flags, thread=True)

    def write(self, path: str, text: str) -> str:
        """``ok``, or the name of the error."""
        return str(self.evaluate(f"write({path!r}, {text!r})"))

    def child(self) -> Agent:
        """Another agent, as its child, with its user and in its cgroup of the moment; outlives it."""
        return Agent(self._agents, self.evaluate("spawn()"), None, self)

    def end_main_thread(self) -> None:
        """Go on in another thread; the leader is a zombie then, as a JVM's may be."""
        self.evaluate("end_main_thread()")

    def membership(self) -> dict[str, str]:
        """Where it is now: see ``cgroup.membership``."""
        return membership(self.pid)

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone, or a zombie whose parent does not reap any more."""
        if isinstance(self._parent, subprocess.Popen):
            self._parent.kill()
            self._parent.wait(timeout=_SECONDS)
        else:
            os.kill(self.pid, signal.SIGKILL)
            self._reap(self._parent)
        self.hang_up()

    def hang_up(self) -> None:
        """Close the connection, which ends it if it still lives."""
        self._stream.close()
        self._socket.close()

    def _reap(self, parent: Agent) -> None:
        try:
            parent.evaluate(f"reap({self.pid})")
        except AgentError:  # the parent has ended, or was killed before
            end = time.monotonic() + _SECONDS
            while _lives(self.pid) and time.monotonic() < end:
                time.sleep(0.005)


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False
