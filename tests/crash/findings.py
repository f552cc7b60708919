"""What many injections of one test found: none stops the others, and all that went wrong is told at the end."""

from __future__ import annotations

from tests.crash.stage import Stage
from tests.crash.strace import Fault

_MOST_SHOWN = 25


class Findings:
    """Collects ``add`` by ``add``; ``tell`` fails the test if anything is wrong."""

    def __init__(self) -> None:
        self.injections = 0
        self._wrong: list[str] = []

    def add(self, stage: Stage, fault: Fault, wrong: list[str]) -> None:
        """Count an injection, and note what is wrong after it, with how to see it again."""
        self.injections += 1
        if wrong:
            complaints = "".join([f"\n    {complaint}" for complaint in wrong])
            what = fault.error or "SIGKILL"
            self._wrong.append(f"{what} at {fault.call.text}{complaints}\n    {stage.reproduction(fault)}")

    def tell(self) -> None:
        """Fail with all that is wrong, if there is anything."""
        assert self.injections, "no fault was injected"
        shown = "\n".join(self._wrong[:_MOST_SHOWN])
        assert not self._wrong, f"{len(self._wrong)} of {self.injections} injections went wrong:\n{shown}"
