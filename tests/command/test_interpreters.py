"""The script under every Python that managed hosts may have, as far as this machine has them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.interpreters import VERSIONS, interpreter
from tests.support.script import SCRIPT, run


@pytest.mark.parametrize("version", VERSIONS)
def test_it_runs_under_every_supported_python(tmp_path: Path, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    program = (python, "-IS", str(SCRIPT))
    ledger = ("--ledger", str(tmp_path / "ledger"))
    assert run("2", "--backend", "simulated:4", *ledger, "--check-dead", program=program).out == "0,1\n"
    assert run("1", "--backend", "simulated:4", "--resource", "b", *ledger, program=program).out == "2\n"
    assert '"index": "2"' in run("status", "--json", *ledger, program=program).out
    assert run("inventory", "--backend", "auto", program=program).code in (0, 71)
    assert run("deallocateAll", *ledger, program=program).code == 0
    assert run("reclaim", *ledger, program=program).out.startswith("nothing to reclaim")
    assert run("--help", program=program).code == 0
