"""What one look at the host showed: its GPUs, and which owners had ended before it."""

from __future__ import annotations

from flink_gpu_discovery.gpus import inventory
from flink_gpu_discovery.visibility import narrow

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

    from flink_gpu_discovery.models import Gpu, Identity, Inventory
    from flink_gpu_discovery.operations.context import Context


class Sight:
    """The host's GPUs, those among them that the caller may see and why no more, and the owners proven dead.

    An owner that ends after the look may have started something on its GPU meanwhile, so only those that were dead
    before it can be judged by it.
    """

    __slots__ = ("dead", "hidden", "inventory", "visible")

    def __init__(
        self, seen: Inventory, visible: tuple[Gpu, ...], hidden: tuple[str, ...], dead: frozenset[Identity]
    ) -> None:
        self.inventory: Final = seen
        self.visible: Final = visible
        self.hidden: Final = hidden
        self.dead: Final = dead


def look(context: Context) -> Sight:
    """Find the dead, then ask for the GPUs; both before the lock is taken, since a driver may hang."""
    options = context.options
    dead = dead_owners(context) if options.check_dead else frozenset()
    seen = inventory.take(
        options.backend,
        context.host,
        context.environment,
        context.deadline,
        processes=bool(dead) and not options.take_busy,
    )
    return Sight(seen, *narrow(seen.gpus, context.environment), dead)


def dead_owners(context: Context) -> frozenset[Identity]:
    """The owners in the ledger that are proven dead now; none in upstream's file, which is migrated first."""
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.ledger.upstream import UpstreamFileError

    try:
        records = Ledger(context.options.ledger, context.host).read()
    except UpstreamFileError:
        return frozenset()
    owners = {record.owner.identity: record.owner for record in records}
    return frozenset([identity for identity, owner in owners.items() if context.processes.is_dead(owner)])
