"""PID 1 of a PID namespace of its own, started by ``namespace``: it has owners under the PIDs that are asked for.

One JSON list ``[verb, argument, …]`` a line comes in, one JSON line goes out. It ends with its standard input, and
the kernel ends every process of the namespace with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn, TextIO

from tests.model import owner_process
from tests.model.owner_process import Answer, stat_fields, tell

_LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
_FIRST_THREAD = 10_000
_START_TIME = 19  # field 22 of proc_pid_stat(5), counted from the third


class Supervisor:
    """The owners that it started, alive or zombies."""

    def __init__(self) -> None:
        self._pipes: dict[int, tuple[TextIO, TextIO]] = {}
        self._last_start_time = 0

    def answer(self, verb: str, arguments: list[str]) -> object:
        """Do what a line asks for."""
        if verb == "operate":
            return owner_process.run(arguments)
        pid = int(arguments[0])
        if verb == "start":
            return self._start(pid)
        if verb == "call":
            return self._call(pid, arguments[1:])
        if verb == "end_main_thread":
            return self._end_main_thread(pid)
        if verb == "kill":
            self._kill(pid)
        else:
            assert verb == "reap"
            os.waitpid(pid, 0)
        return None

    def _start(self, pid: int) -> int:
        """Fork an owner that has exactly this PID; returns its start time."""
        self._wait_for_another_start_time()
        requests, to_owner = os.pipe()
        from_owner, answers = os.pipe()
        _LAST_PID.write_text(str(pid - 1))
        child = os.fork()
        if child == 0:
            _be_owner(pid, requests, answers)
        os.close(requests)
        os.close(answers)
        self._pipes[pid] = (os.fdopen(to_owner, "w"), os.fdopen(from_owner, "r"))
        assert child == pid, f"the owner got pid {child} instead of {pid}"
        self._finish(pid)  # it has its name now
        self._last_start_time = int(stat_fields(f"/proc/{pid}/stat")[_START_TIME])
        return self._last_start_time

    def _wait_for_another_start_time(self) -> None:
        """It counts steps of 10 ms, and one step apart may yet be the same process in another time namespace."""
        ticks = os.sysconf("SC_CLK_TCK")
        while int(time.clock_gettime(time.CLOCK_BOOTTIME) * ticks) <= self._last_start_time + 1:
            time.sleep(0.002)

    def _call(self, pid: int, words: list[str]) -> Answer:
        tell(self._pipes[pid][0], words)
        return self._finish(pid)

    def _end_main_thread(self, pid: int) -> Answer:
        """The thread that lives on has a number, too: one that no owner is meant to get."""
        _LAST_PID.write_text(str(_FIRST_THREAD))
        return self._call(pid, owner_process.END_MAIN_THREAD)

    def _finish(self, pid: int) -> Answer:
        line = self._pipes[pid][1].readline()
        assert line, f"owner {pid} has ended"
        code, out, err = json.loads(line)
        return code, out, err

    def _kill(self, pid: int) -> None:
        """SIGKILL; it stays a zombie until it is reaped."""
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        for pipe in self._pipes.pop(pid):
            pipe.close()


def _be_owner(pid: int, requests: int, answers: int) -> NoReturn:
    try:
        if os.getpid() == pid:
            owner_process.live(requests, answers)
    finally:
        os._exit(1)


def facts() -> tuple[str, int, int]:
    """Boot id, PID namespace and uid, as owners in this namespace have them."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return boot_id, Path("/proc/self/ns/pid").stat().st_ino, os.getuid()


def main() -> None:
    """Serve until standard input ends."""
    assert os.getpid() == 1, "meant to be started by tests.model.namespace"
    supervisor = Supervisor()
    tell(sys.stdout, facts())
    for line in sys.stdin:
        verb, *arguments = json.loads(line)
        tell(sys.stdout, supervisor.answer(verb, arguments))


if __name__ == "__main__":
    main()
