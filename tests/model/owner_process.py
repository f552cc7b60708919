"""What an owner does: it lives on, and runs commands as their parent, until it is killed.

One JSON list of words a line comes in, one JSON line ``[exit code, standard output, standard error]`` goes out.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import NoReturn, TextIO

# A name that spoils a reading of /proc/PID/stat that doesn't look for the last parenthesis.
COMMAND = "ja) Z 1 (va"
COMMAND_SECONDS = 30
END_MAIN_THREAD = ["end the main thread"]

Answer = tuple[int, str, str]


def run(words: list[str]) -> Answer:
    """One command from start to end."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_SECONDS, check=False
    )
    return done.returncode, done.stdout, done.stderr


def live(requests: int, answers: int) -> NoReturn:
    """Be the owner, in a process that was forked for it."""
    Path("/proc/self/comm").write_text(COMMAND)
    with os.fdopen(requests, "r") as incoming, os.fdopen(answers, "w") as outgoing:
        tell(outgoing, (0, "", ""))
        _serve(incoming, outgoing)
    os._exit(0)


def tell(outgoing: TextIO, answer: object) -> None:
    """Send one line."""
    outgoing.write(json.dumps(answer) + "\n")
    outgoing.flush()


def stat_fields(path: str) -> list[str]:
    """The fields of a ``stat`` file of ``/proc`` from the third on, which is the state."""
    return Path(path).read_text().rpartition(") ")[2].split()


def _serve(incoming: TextIO, outgoing: TextIO) -> None:
    while line := incoming.readline():
        words = json.loads(line)
        if words == END_MAIN_THREAD:
            threading.Thread(target=_serve_alone, args=(incoming, outgoing), daemon=True).start()
            ctypes.CDLL(None).pthread_exit(None)
        tell(outgoing, run(words))


def _serve_alone(incoming: TextIO, outgoing: TextIO) -> None:
    """Go on once the main thread is a zombie, as a JVM's may be."""
    while stat_fields(f"/proc/self/task/{os.getpid()}/stat")[0] != "Z":
        time.sleep(0.001)
    tell(outgoing, (0, "", ""))
    _serve(incoming, outgoing)
    os._exit(0)
