"""``allocate``: FLIP-108's first function, with or without the ledger."""

from __future__ import annotations

import os
import time

from flink_gpu_discovery import allocation
from flink_gpu_discovery.errors import SystemRefusedError, TooFewGpusError
from flink_gpu_discovery.operations import answers
from flink_gpu_discovery.operations.sight import dead_owners, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.operations.context import Context
    from flink_gpu_discovery.operations.sight import Sight

_PAUSE_SECONDS = 0.05
# --wait ends this long before the deadline, so that the refusal still names who holds what.
_RESERVE_SECONDS = 0.1


def allocate(context: Context, amount: int, deliver: Callable[[str], None]) -> tuple[str, ...]:
    """Give exactly ``amount`` GPUs, or raise an error with nothing changed; returns notes for people.

    ``deliver`` takes the one line for Flink; if it fails, what was recorded is taken back.
    """
    if amount == 0:
        return ()
    if context.options.isolate:
        raise SystemRefusedError(
            "this release can't confine a task executor yet", "leave out --isolate, also in the settings file"
        )
    wait_until = time.monotonic() + context.options.wait_seconds
    owner = context.processes.owner(context.options.owner_pid or os.getppid()) if context.options.coordinate else None
    sight = look(context)
    while True:
        try:
            return _serve(context, sight, owner, amount, deliver)
        except TooFewGpusError as error:
            left = min(wait_until - time.monotonic(), context.deadline.remaining() - _RESERVE_SECONDS)
            just_ended = dead_owners(context) - sight.dead if context.options.check_dead else frozenset()
            if left <= 0 and not (just_ended and context.deadline.remaining() > 0):
                reasons = "; ".join([error.what, *sight.hidden, *sight.inventory.notes])
                raise TooFewGpusError(reasons, error.mend) from error
        if not just_ended:
            time.sleep(min(_PAUSE_SECONDS, left))
        if just_ended or sight.dead or len([gpu for gpu in sight.visible if not gpu.fault]) < amount:
            sight = look(context)


def _serve(
    context: Context, sight: Sight, owner: Owner | None, amount: int, deliver: Callable[[str], None]
) -> tuple[str, ...]:
    """One attempt; without an owner it is FLIP-108's default script."""
    if owner is None:
        deliver(answers.line(allocation.first_healthy(sight.visible, amount), context.options.id_kind))
        return sight.inventory.notes
    from flink_gpu_discovery.operations.grant import Grant

    return (*sight.inventory.notes, *Grant(context, owner, sight).make(amount, deliver))
