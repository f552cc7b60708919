"""``deallocateAll``: FLIP-108's second function, which an owner calls for itself."""

from __future__ import annotations

import os

from flink_gpu_discovery import allocation, interrupts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.ledger.store import Ledger
    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.operations.context import Context


def deallocate_all(context: Context) -> None:
    """Remove all of the owner's records. Does nothing without coordination, or without a ledger.

    A confined owner can open no GPU at all from then on, though it stays in its cgroup.
    """
    if not context.options.coordinate:
        return
    from flink_gpu_discovery.ledger.store import Ledger

    owner = context.owner()
    ledger = Ledger(context.options.ledger, context.host, roots=context.options.isolate)
    if not ledger.exists():
        return
    if context.options.isolate:
        _of_confined(context, ledger, owner)
        return
    if context.options.migrate_upstream:
        from flink_gpu_discovery.operations.migrate import migrate

        migrate(context, ledger)
    with ledger.lock(context.deadline) as lock:
        before = ledger.read()
        after = allocation.without_owner(before, owner)
        if len(after) < len(before):
            context.deadline.check("before giving back the GPUs")
            ledger.replace(lock, after)


def _of_confined(context: Context, ledger: Ledger, owner: Owner) -> None:
    """First nothing can be opened, which is proven; then the GPUs are free for others."""
    from flink_gpu_discovery.isolation.places import acting_owner
    from flink_gpu_discovery.isolation.retreat import leave_cgroups
    from flink_gpu_discovery.operations.confinements import Confinements, gpus_now

    leave_cgroups(context.host)
    owner = acting_owner(context.host, context.processes, owner)
    confinements = Confinements(context, gpus_now(context))
    with ledger.lock(context.deadline) as lock:
        before = confinements.recover(ledger, lock, ledger.read())
        after = allocation.without_owner(before, owner)
        if len(after) == len(before):
            return
        rules = confinements.rules(after, owner.identity)
        context.check_caller(owner)
        confinement = confinements.of(before, owner, rules)
        try:
            confinement.make()
            confinement.enforce(rules)
            confinement.admit(owner, frozenset([os.getpid(), *context.caller.chain]), context.deadline)
            confinement.prove(owner, rules, context.deadline.remaining())
            context.check_caller(owner)
            context.deadline.check("before giving back the GPUs")
            ledger.replace(lock, after)
        except BaseException:
            interrupts.ignore_signals()
            interrupts.lift_limit()
            if not confinement.withdraw() and confinement.exists():
                confinement.enforce(confinements.rules(before, owner.identity))
            if not ledger.holds(before):
                ledger.replace(lock, before)
            raise
