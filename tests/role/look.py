"""Print, as JSON, every path where the role may put things: mode, owner, and the content's hash or the link's target.

With arguments it looks in those folders instead. File systems that are mounted below are left out. Runs on hosts under
``python3 -IS``, which may be 3.9. Copies that useradd(8) and its like make of files don't count.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import stat
import sys
from pathlib import Path

FOLDERS = (Path("/etc"), Path("/opt"), Path("/usr/local"), *Path("/run").glob("flink*"))
BACKUPS = [f"/etc/{name}-" for name in ("passwd", "group", "shadow", "gshadow", "subuid", "subgid")]


def look(path: Path, found: dict[str, str]) -> None:
    """Note the path, and what is below it."""
    status = path.lstat()
    about = f"{stat.filemode(status.st_mode)} {status.st_uid}:{status.st_gid}"
    if stat.S_ISLNK(status.st_mode):
        about += f" -> {path.readlink()}"
    elif stat.S_ISREG(status.st_mode):
        about += f" {hashlib.sha256(path.read_bytes()).hexdigest()}"
    found[str(path)] = about
    if stat.S_ISDIR(status.st_mode):
        for entry in path.iterdir():
            with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
                if not (entry.is_dir() and entry.is_mount()):
                    look(entry, found)


if __name__ == "__main__":
    listing: dict[str, str] = {}
    for folder in [Path(word) for word in sys.argv[1:]] or FOLDERS:
        look(folder, listing)
    sys.stdout.write(
        json.dumps({path: about for path, about in listing.items() if path not in BACKUPS}, sort_keys=True)
    )
