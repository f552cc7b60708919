"""``allocate``: FLIP-108's first function, with or without the ledger."""

from __future__ import annotations

import time

from flink_gpu_discovery import allocation
from flink_gpu_discovery.errors import LookAgainError, PermissionRefusedError, TooFewGpusError
from flink_gpu_discovery.operations import answers
from flink_gpu_discovery.operations.sight import dead_owners, look

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.operations.context import Context
    from flink_gpu_discovery.operations.grant import Grant
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
    options = context.options
    if options.resources and options.resource not in options.resources:
        raise PermissionRefusedError(
            f"resource {options.resource!r} is none of {', '.join(options.resources)}",
            "see 'resources' in the settings file",
        )
    wait_until = time.monotonic() + options.wait_seconds
    owner = context.owner() if options.coordinate else None
    if options.isolate:
        _leave_cgroups(context)
    sight = look(context)
    while True:
        try:
            return _serve(context, sight, owner, amount, deliver)
        except LookAgainError:
            _leave_cgroups(context)
            sight = look(context)
            continue
        except TooFewGpusError as error:
            left = min(wait_until - time.monotonic(), context.deadline.remaining() - _RESERVE_SECONDS)
            just_ended = dead_owners(context) - sight.dead if options.check_dead else frozenset()
            if left <= 0 and not (just_ended and context.deadline.remaining() > 0):
                reasons = "; ".join([error.what, *sight.hidden, *sight.inventory.notes])
                raise TooFewGpusError(reasons, error.mend) from error
        if not just_ended:
            time.sleep(min(_PAUSE_SECONDS, left))
        if just_ended or sight.dead or len([gpu for gpu in sight.visible if not gpu.fault]) < amount:
            sight = look(context)


def _leave_cgroups(context: Context) -> None:
    """The caller's, in which it could hide GPUs; what is needed next is imported meanwhile."""
    from flink_gpu_discovery.isolation.retreat import Leaving

    leaving = Leaving(context.host)
    leaving.start()
    import flink_gpu_discovery.isolation.v2
    import flink_gpu_discovery.operations.confined_grant  # noqa: F401

    leaving.finish()


def _serve(
    context: Context, sight: Sight, owner: Owner | None, amount: int, deliver: Callable[[str], None]
) -> tuple[str, ...]:
    """One attempt; without an owner it is FLIP-108's default script."""
    if owner is None:
        deliver(answers.line(allocation.first_healthy(sight.visible, amount), context.options.id_kind))
        return sight.inventory.notes
    return (*sight.inventory.notes, *_grant(context, sight, owner).make(amount, deliver))


def _grant(context: Context, sight: Sight, owner: Owner) -> Grant:
    if context.options.isolate:
        from flink_gpu_discovery.operations.confined_grant import ConfinedGrant

        return ConfinedGrant(context, owner, sight)
    from flink_gpu_discovery.operations.grant import Grant

    return Grant(context, owner, sight)
