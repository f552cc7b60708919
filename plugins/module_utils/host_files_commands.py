"""Commands of the host that a run needs, each bounded, in an environment of its own."""

from __future__ import annotations

import subprocess

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_SECONDS = 30
_LONGEST_QUOTE = 500


def run(command: list[str]) -> str:
    """Why it fails, in one line; empty if it does not."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_SECONDS,
            check=False,
            env={"PATH": PATH, "LC_ALL": "C"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = "; ".join(done.stdout.decode(errors="replace").split("\n")).strip("; ")
    return f"exit code {done.returncode}: {said[:_LONGEST_QUOTE]}" if done.returncode else ""
