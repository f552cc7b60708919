"""Play a playbook on the scenario's hosts as Molecule does, from a test."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.role.collection import BIN
from tests.role.outcome import Outcome, read_results
from tests.support.script import ROOT

_SECONDS = 120.0


def play(folder: Path, playbook: str, *, check: bool = False, kill_at: int = 0, **variables: object) -> Outcome:
    """With Molecule's environment and inventories; ``folder`` is an empty one for what it writes.

    ``kill_at``: SIGKILL ends the play before it starts its n-th task, counted from 1, those of all hosts together.
    """
    scenario = os.environ["MOLECULE_SCENARIO_DIRECTORY"]
    words = [f"--inventory={path}/" for path in (ROOT / "molecule/shared/inventory", f"{scenario}/inventory")]
    words += ["--check"] * check + [f"--extra-vars={json.dumps(variables)}", playbook]
    results = folder / "results"
    done = subprocess.run(
        [BIN / "ansible-playbook", *words],
        capture_output=True,
        env={**os.environ, "TASK_RESULTS_FILE": str(results), "TASK_RESULTS_KILL_AT": str(kill_at)},
        cwd=folder,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    return Outcome(done.returncode, done.stdout, done.stderr, read_results(results), 0)
