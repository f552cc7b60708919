"""``allocate``: FLIP-108's first function, with or without the ledger."""

from __future__ import annotations

import os
import time

from flink_gpu_discovery import allocation
from flink_gpu_discovery.errors import SystemRefusedError, TooFewGpusError
from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.operations import answers
from flink_gpu_discovery.visibility import narrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from flink_gpu_discovery.models import Gpu, Inventory, Owner
    from flink_gpu_discovery.operations.context import Context

_PAUSE_SECONDS = 0.05
# --wait ends this long before the deadline, so that the refusal still names who holds what.
_RESERVE_SECONDS = 0.1


class _Sight:
    """The GPUs of the host, those among them that the caller may see, and why it sees no more."""

    __slots__ = ("hidden", "inventory", "visible")

    def __init__(self, seen: Inventory, visible: tuple[Gpu, ...], hidden: tuple[str, ...]) -> None:
        self.inventory: Final = seen
        self.visible: Final = visible
        self.hidden: Final = hidden


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
    sight = _look(context)
    while True:
        try:
            return _serve(context, sight, owner, amount, deliver)
        except TooFewGpusError as error:
            left = min(wait_until - time.monotonic(), context.deadline.remaining() - _RESERVE_SECONDS)
            if left <= 0:
                reasons = "; ".join([error.what, *sight.hidden, *sight.inventory.notes])
                raise TooFewGpusError(reasons, error.mend) from error
        time.sleep(min(_PAUSE_SECONDS, left))
        if len([gpu for gpu in sight.visible if not gpu.fault]) < amount:
            sight = _look(context)


def _look(context: Context) -> _Sight:
    seen = inventory.take(context.options.backend, context.host, context.environment, context.deadline)
    return _Sight(seen, *narrow(seen.gpus, context.environment))


def _serve(
    context: Context, sight: _Sight, owner: Owner | None, amount: int, deliver: Callable[[str], None]
) -> tuple[str, ...]:
    """One attempt; without an owner it is FLIP-108's default script."""
    if owner is None:
        deliver(answers.line(allocation.first_healthy(sight.visible, amount), context.options.id_kind))
        return sight.inventory.notes
    from flink_gpu_discovery.operations.grant import Grant

    notes = Grant(context, owner).make(sight.inventory.gpus, sight.visible, amount, deliver)
    return (*sight.inventory.notes, *notes)
