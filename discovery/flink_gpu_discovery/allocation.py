"""Which GPUs an owner gets: pure decisions on an inventory and the ledger's records."""

from __future__ import annotations

from flink_gpu_discovery.errors import PermissionRefusedError, TooFewGpusError, UsageError
from flink_gpu_discovery.models import Gpu, Owner, Record, index_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Final


class Decision:
    """The outcome of an allocation.

    ``gpus`` are the owner's for this resource, ascending by index; ``records`` is the whole ledger
    afterwards; ``granted`` are the records that are new in it (none when a call was repeated), and
    ``taken_over`` those of dead owners that they replaced.
    """

    __slots__ = ("gpus", "granted", "records", "taken_over")

    def __init__(
        self,
        gpus: tuple[Gpu, ...],
        records: tuple[Record, ...],
        granted: tuple[Record, ...] = (),
        taken_over: tuple[Record, ...] = (),
    ) -> None:
        self.gpus: Final = gpus
        self.records: Final = records
        self.granted: Final = granted
        self.taken_over: Final = taken_over


def first_healthy(gpus: tuple[Gpu, ...], amount: int) -> tuple[Gpu, ...]:
    """FLIP-108's default script: exactly ``amount`` GPUs, lowest indexes first, or an error."""
    healthy = [gpu for gpu in gpus if not gpu.fault]
    if len(healthy) < amount:
        raise TooFewGpusError(
            f"too few GPUs: {amount} asked for, {len(gpus)} seen, {len(healthy)} healthy",
            "lower external-resource.<name>.amount or see 'flink-gpu-discovery inventory'",
        )
    return tuple(healthy[:amount])


def decide(
    *,
    gpus: tuple[Gpu, ...],
    records: tuple[Record, ...],
    owner: Owner,
    resource: str,
    amount: int,
    now: str,
    is_dead: Callable[[Owner], bool] | None,
    still_used: Callable[[Record, Gpu], str],
    keep_ordinals: bool = False,
) -> Decision:
    """Decide what ``owner`` gets for ``resource``; ``gpus`` ascending by index, ``now`` in ISO 8601.

    Unrecorded GPUs first, lowest index first; then, where ``is_dead`` is given (``--check-dead``), those
    of owners that it proves dead, except where ``still_used`` says what yet uses one of them (empty:
    nothing does). With ``keep_ordinals`` only those that come after all that the owner holds already, so that its
    ordinals stay what they are. ``TooFewGpusError`` when that isn't enough, ``UsageError`` when the owner already has
    another amount of this resource.
    """
    own = [record for record in records if _is_allotment(record, owner, resource)]
    if own:
        return Decision(_repeated(gpus, own, resource, amount), records)
    held = {record.uuid: record for record in records}
    healthy = [gpu for gpu in gpus if not gpu.fault]
    if keep_ordinals:
        last = max([_place(record) for record in records if record.owner.identity == owner.identity], default=None)
        healthy = [gpu for gpu in healthy if last is None or _place(gpu) > last]
    chosen = [gpu for gpu in healthy if gpu.uuid not in held and not _held_otherwise(gpu, records)][:amount]
    in_use: list[str] = []
    if len(chosen) < amount and is_dead is not None:
        orphaned = [gpu for gpu in healthy if gpu.uuid in held and is_dead(held[gpu.uuid].owner)]
        uses = [still_used(held[gpu.uuid], gpu) for gpu in orphaned]
        in_use = [f"GPU {gpu.index} is still used by {use}" for gpu, use in zip(orphaned, uses) if use]
        chosen += [gpu for gpu, use in zip(orphaned, uses) if not use][: amount - len(chosen)]
    if len(chosen) < amount:
        earlier = [gpu.index for gpu in gpus if not gpu.fault and gpu not in healthy and gpu.uuid not in held]
        if earlier:
            free = f"GPU {_short(earlier)} is free, but comes before one that {owner} holds"
            in_use.append(f"{free}, whose ordinal would move (--id uuid avoids that)")
        raise _too_few(gpus, records, amount, in_use, check_dead=is_dead is not None)
    chosen.sort(key=lambda gpu: index_order(gpu.index))
    granted = tuple([_record(gpu, owner, resource, now) for gpu in chosen])
    given = {gpu.uuid for gpu in chosen}
    kept = tuple([record for record in records if record.uuid not in given])
    taken_over = tuple([record for record in records if record.uuid in given])
    return Decision(tuple(chosen), kept + granted, granted, taken_over)


def check_limits(
    decision: Decision, owner: Owner, per_owner: int, per_uid: int, is_dead: Callable[[Owner], bool]
) -> None:
    """``PermissionRefusedError`` if a grant takes the owner, or its uid's live owners, beyond a limit (0: none)."""
    if not decision.granted:
        return
    mine = [record for record in decision.records if record.owner.identity == owner.identity]
    if per_owner and len(mine) > per_owner:
        raise PermissionRefusedError(
            f"{owner} would hold {len(mine)} GPUs, {per_owner} at most", "see max-gpus-per-owner in the settings file"
        )
    of_uid = [record for record in decision.records if record.owner.uid == owner.uid]
    if per_uid and len(of_uid) > per_uid and len([record for record in of_uid if not is_dead(record.owner)]) > per_uid:
        raise PermissionRefusedError(
            f"the owners of uid {owner.uid} would hold more than {per_uid} GPUs together",
            "see max-gpus-per-uid in the settings file",
        )


def without_owner(records: tuple[Record, ...], owner: Owner) -> tuple[Record, ...]:
    """The records that are not ``owner``'s: what is left after ``deallocateAll``."""
    return tuple([record for record in records if record.owner.identity != owner.identity])


def ordinals(records: tuple[Record, ...], owner: Owner, uuids: Iterable[str]) -> tuple[str, ...]:
    """Positions of ``uuids`` among all of the owner's GPUs in PCI order, ascending.

    That is how CUDA numbers them once every other GPU is denied.
    """
    mine = [record for record in records if record.owner.identity == owner.identity]
    mine.sort(key=_place)
    wanted = set(uuids)
    return tuple([str(place) for place, record in enumerate(mine) if record.uuid in wanted])


def _place(one: Record | Gpu) -> tuple[int, str, tuple[int, int]]:
    """Sort key of PCI order."""
    return len(one.pci_address), one.pci_address, index_order(one.index)


def _is_allotment(record: Record, owner: Owner, resource: str) -> bool:
    return record.resource == resource and record.owner.identity == owner.identity


def _held_otherwise(gpu: Gpu, records: tuple[Record, ...]) -> bool:
    """Whether the same device is held under another UUID.

    That is so when MIG was switched on or off under a whole GPU or an instance that is held, or when an AMD GPU is
    known by its address to one backend and by its own id to another.
    """
    for record in records:
        if record.uuid != gpu.uuid and record.pci_address == gpu.pci_address:
            if (":" in record.index) != (":" in gpu.index):
                return True
            if record.uuid.startswith("GPU-PCI-") != gpu.uuid.startswith("GPU-PCI-"):
                return True
    return False


def _record(gpu: Gpu, owner: Owner, resource: str, now: str) -> Record:
    return Record(
        uuid=gpu.uuid, index=gpu.index, pci_address=gpu.pci_address, resource=resource, owner=owner, since=now
    )


def _repeated(gpus: tuple[Gpu, ...], own: list[Record], resource: str, amount: int) -> tuple[Gpu, ...]:
    """The GPUs that an owner already has: a retry changes nothing."""
    if len(own) != amount:
        raise UsageError(
            f"{own[0].owner} already holds {len(own)} GPUs as resource {resource!r}, {amount} asked for",
            "ask for the same amount, for another --resource, or call deallocateAll first",
        )
    healthy = {gpu.uuid: gpu for gpu in gpus if not gpu.fault}
    lost = [record for record in own if record.uuid not in healthy]
    if lost:
        names = ", ".join([f"{record.uuid} (index {record.index} at the time)" for record in lost[:4]])
        raise TooFewGpusError(
            f"{len(lost)} of the {amount} GPUs held by {own[0].owner} vanished, failed or are not visible: {names}",
            "restart the task executor to get others",
        )
    return tuple(sorted([healthy[record.uuid] for record in own], key=lambda gpu: index_order(gpu.index)))


def _too_few(
    gpus: tuple[Gpu, ...], records: tuple[Record, ...], amount: int, in_use: list[str], *, check_dead: bool
) -> TooFewGpusError:
    healthy = {gpu.uuid: gpu.index for gpu in gpus if not gpu.fault}
    held = [record for record in records if record.uuid in healthy]
    mend = "stop one of them" if check_dead else "add --check-dead to take over those of dead owners"
    if any(["is still used by" in use for use in in_use]):
        mend = "end what still uses GPUs of dead owners, or add --take-busy"
    used = "".join([f"; {use}" for use in in_use[:8]])
    return TooFewGpusError(
        f"too few GPUs: {amount} asked for, {len(gpus)} seen, {len(healthy)} healthy, {len(held)} held"
        f"{_by_whom(held, healthy)}{used}",
        f"{mend}, or lower external-resource.<name>.amount" if held else "lower external-resource.<name>.amount",
    )


def _by_whom(held: list[Record], index_now: dict[str, str]) -> str:
    indexes: dict[str, list[str]] = {}
    for record in held:
        indexes.setdefault(str(record.owner), []).append(index_now[record.uuid])
    owners = [f"{owner}: {_short(names)}" for owner, names in indexes.items()]
    more = f"; and {len(owners) - 8} more owners" if len(owners) > 8 else ""
    return f" by {'; '.join(owners[:8])}{more}" if owners else ""


def _short(names: list[str]) -> str:
    return ",".join(names[:16]) + (",..." if len(names) > 16 else "")
