"""The discovery script as a person or a monitor calls it, and the ledger as it then tells."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.script import SCRIPT

CALL_LIMIT_SECONDS = 15.0


@dataclass(frozen=True)
class Record:
    """One GPU that a task executor holds."""

    uuid: str
    index: str
    owner_pid: int
    liveness: str


@dataclass(frozen=True)
class Script:
    """The discovery script and the ledger that it works on."""

    ledger: Path
    path: Path = SCRIPT

    def records(self) -> tuple[Record, ...]:
        """Return what `status --json` says."""
        answer = json.loads(self._run("status", "--json"))
        return tuple(
            Record(entry["uuid"], entry["index"], entry["owner"]["pid"], entry["owner"]["liveness"])
            for entry in answer["records"]
        )

    def gpus_by_owner(self) -> dict[int, frozenset[str]]:
        """Return the indexes that each owner holds, by its PID."""
        records = self.records()
        return {
            pid: frozenset(record.index for record in records if record.owner_pid == pid)
            for pid in {record.owner_pid for record in records}
        }

    def ledger_lines(self, owner_pid: int) -> list[str]:
        """Return the ledger's own lines about one owner."""
        uuids = [record.uuid for record in self.records() if record.owner_pid == owner_pid]
        lines = self.ledger.read_text().splitlines()
        return [line for line in lines if any(uuid in line.split("\t") for uuid in uuids)]

    def reclaim(self) -> None:
        """Free the GPUs of dead owners."""
        self._run("reclaim")

    def _run(self, *arguments: str) -> str:
        command = [str(self.path), *arguments, "--ledger", str(self.ledger)]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CALL_LIMIT_SECONDS)
        assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
        return done.stdout
