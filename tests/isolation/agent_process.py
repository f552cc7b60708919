"""What runs in an agent: it lives on, and does what it is told to, itself or as the parent of commands.

Its text is handed to ``python3 -c``, so it imports the standard library alone and runs on Python 3.9. One JSON object
a line comes in over a Unix socket, one goes out. It ends when the socket does.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any, NoReturn

_calls: dict[int, subprocess.Popen[str]] = {}
_jobs: queue.Queue[str | None] = queue.Queue()
_done: queue.Queue[dict[str, Any]] = queue.Queue()
_state = {"leave": False}


def try_open(path: str, flags: int = os.O_RDWR) -> str:
    """``opened``, or the name of the error, say ``EPERM`` from a device cgroup or ``ENXIO`` without a driver."""
    try:
        os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NOCTTY))
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "opened"


def write(path: str, text: str) -> str:
    """``ok``, or the name of the error; in one system call, as the files of cgroups want it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, text.encode())
        finally:
            os.close(descriptor)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def start(words: list[str], env: dict[str, str]) -> int:
    """Begin a command as a child; returns its PID."""
    process = subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **env},
        text=True,
    )
    _calls[process.pid] = process
    return process.pid


def finish(pid: int, seconds: float) -> tuple[int, str, str]:
    """Exit code and what it printed, of a command that ``start`` began."""
    process = _calls[pid]
    out, err = process.communicate(timeout=seconds)
    del _calls[pid]
    return process.returncode, out, err


def spawn() -> int:
    """Begin an agent as a child; it calls the lab by itself."""
    words = Path("/proc/self/cmdline").read_text().split("\0")[:-1]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True)
    _calls[process.pid] = process
    return process.pid


def reap(pid: int) -> int:
    """Wait for a child that is about to end."""
    return _calls.pop(pid).wait(timeout=10)


def end_main_thread() -> None:
    """After the answer the main thread ends, and another goes on; ``/proc/PID/stat`` shows a zombie then."""
    _state["leave"] = True


def evaluate(source: str, names: dict[str, Any] = {}) -> Any:  # noqa: B006 - names stay from call to call
    """The value of an expression; of statements, what they leave in ``result``."""
    names.update({key: value for key, value in globals().items() if key not in names and not key.startswith("_")})
    try:
        code = compile(source, "<lab>", "eval")
    except SyntaxError:
        names.pop("result", None)
        exec(compile(source, "<lab>", "exec"), names)
        return names.get("result")
    return eval(code, names)


def _answer(source: str) -> dict[str, Any]:
    try:
        return {"value": evaluate(source)}
    except BaseException:
        return {"error": traceback.format_exc(limit=-3)}


def _serve(stream: Any) -> None:
    """Answer until the lab hangs up."""
    for line in stream:
        request = json.loads(line)
        if request["thread"]:
            _jobs.put(request["source"])
            answer = _done.get()
        else:
            answer = _answer(request["source"])
        stream.write(json.dumps(answer).encode() + b"\n")
        stream.flush()
        if _state["leave"]:
            _state["leave"] = False
            _jobs.put(None)
            ctypes.CDLL(None).pthread_exit(None)
    os._exit(0)


def _second_thread(stream: Any) -> NoReturn:
    """Do what is for a thread that was there from the start; take over when the main one ends."""
    while (source := _jobs.get()) is not None:
        _done.put(_answer(source))
    while Path(f"/proc/self/task/{os.getpid()}/stat").read_text().rpartition(") ")[2][0] != "Z":
        time.sleep(0.001)
    threading.Thread(target=_second_thread, args=(stream,), daemon=True).start()
    _serve(stream)
    os._exit(0)


def _main() -> None:
    connection = socket.socket(socket.AF_UNIX)
    connection.connect("\0" + sys.argv[1])
    stream = connection.makefile("rwb")
    threading.Thread(target=_second_thread, args=(stream,), daemon=True).start()
    _serve(stream)


if __name__ == "__main__":
    _main()
