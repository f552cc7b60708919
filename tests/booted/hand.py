"""What runs commands on a booted host, one after the other: JSON lines in and out.

Its text is handed to ``python3 -c`` there, by one ``podman exec`` that takes far longer than most of the commands. It
imports the standard library alone, and runs on Python 3.9.
"""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from typing import Any


def carry_out(words: list[str], user: str, seconds: float) -> dict[str, Any]:
    """Exit code and what was printed, or what hindered it."""
    entry = pwd.getpwnam(user)
    groups = os.getgrouplist(user, entry.pw_gid)
    environment = {**os.environ, "HOME": entry.pw_dir, "USER": user, "LOGNAME": user}
    done = subprocess.run(
        words,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=environment,
        user=entry.pw_uid,
        group=entry.pw_gid,
        extra_groups=groups,
        timeout=seconds,
        check=False,
    )
    return {"code": done.returncode, "out": done.stdout.decode(), "err": done.stderr.decode()}


def main() -> None:
    """Until the test run closes its end."""
    os.chdir("/")
    for line in sys.stdin:
        try:
            answer = carry_out(**json.loads(line))
        except (OSError, KeyError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
