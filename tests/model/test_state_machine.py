"""The real command against the model, step by step, with real processes and real PID reuse.

``FLINK_GPU_MODEL_EXAMPLES=2000 pytest tests/model`` makes a long run of it (two tests, so many examples each, some
30 calls of the command an example). A failure prints the shortest sequence of steps that shows it, and a
``@reproduce_failure`` line to put above the class in ``machine`` that failed; it is also kept in ``.hypothesis`` and
tried first the next time.
"""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from tests.model.machine import EmptyHost, InheritedLedger
from tests.model.namespace import CannotUnshareError, unshare_words
from tests.model.stage import Stage
from tests.support.script import ROOT

_EXAMPLES = int(os.environ.get("FLINK_GPU_MODEL_EXAMPLES", "35"))
_SETTINGS = settings(
    max_examples=_EXAMPLES,
    stateful_step_count=60,
    deadline=None,
    derandomize=False,
    print_blob=True,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    phases=(Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600 + 10 * _EXAMPLES)]


@pytest.mark.parametrize("machine", [EmptyHost, InheritedLedger])
def test_every_answer_and_every_record_is_as_the_model_predicts(machine: type[Stage]) -> None:
    try:
        unshare_words()
    except CannotUnshareError as error:
        pytest.skip(str(error))
    machine.tally.clear()
    run_state_machine_as_test(machine, settings=_SETTINGS)
    sys.stdout.writelines(f"{count:6d} {what}\n" for what, count in sorted(machine.tally.items()))
