"""A stand-in for the GPU driver that FLIP-108 designed and no Flink has released.

Usage: flip108_driver.py SCRIPT AMOUNT [ARGS...]. The process is the task executor: it opens the driver,
prints the indexes, lives until its standard input ends, and closes the driver. It exits with 1 where opening
or closing failed.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

CALL_LIMIT_SECONDS = 10.0


class DriverError(Exception):
    """The discovery script failed, and with it the task executor's start or the driver's closing."""


@dataclass(frozen=True)
class Flip108Driver:
    """Runs `SCRIPT allocate AMOUNT ARGS` at opening and `SCRIPT deallocateAll ARGS` at closing."""

    script: str
    amount: int
    args: tuple[str, ...] = ()

    def open(self) -> frozenset[str]:
        """Return the indexes of the task executor's GPUs."""
        first_line = self._call("allocate", str(self.amount)).partition("\n")[0]
        return frozenset(index.strip() for index in first_line.split(",") if index.strip())

    def close(self) -> None:
        """Give the task executor's GPUs back."""
        self._call("deallocateAll")

    def _call(self, *keyword: str) -> str:
        command = [self.script, *keyword, *self.args]
        try:
            done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=CALL_LIMIT_SECONDS)
        except subprocess.TimeoutExpired as expired:
            raise DriverError(f"{keyword[0]} took more than {expired.timeout:.0f} s") from expired
        if done.returncode != 0:
            raise DriverError(f"{keyword[0]} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout


def main() -> int:
    """Live as a task executor does."""
    script, amount, *args = sys.argv[1:]
    driver = Flip108Driver(script, int(amount), tuple(args))
    try:
        sys.stdout.write(",".join(sorted(driver.open())) + "\n")
        sys.stdout.flush()
        sys.stdin.read()
        driver.close()
    except DriverError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
