"""Confinement under every Python that managed hosts may have."""

from __future__ import annotations

import pytest

from tests.isolation.confining import CARDS, any_view, opens
from tests.isolation.installation import SCRIPT
from tests.isolation.lab import Lab
from tests.support.interpreters import VERSIONS, interpreter


@any_view
@pytest.mark.parametrize("version", VERSIONS)
def test_an_owner_is_confined_under_every_supported_python(lab: Lab, version: str) -> None:
    python = interpreter(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    lab.nvidia(*CARDS)
    owner = lab.executor()
    options = ("--isolate", "--backend", "nvml")
    done = lab.run(python, "-IS", SCRIPT, "2", *options, "--owner-pid", str(owner.pid))
    assert (done.code, done.out, done.err) == (0, "0,1\n", "")
    assert opens(owner) == {0, 1}
    assert "in force" in lab.run(python, "-IS", SCRIPT, "status", *options).out
    owner.kill()
    assert lab.run(python, "-IS", SCRIPT, "reclaim", *options).out.count("reclaimed GPU") == 2
