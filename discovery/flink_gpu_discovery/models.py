"""The values that the modules exchange: GPUs, owners and the ledger's records.

Plain classes with ``__slots__`` instead of dataclasses: importing ``dataclasses`` costs three times
as much as starting Python.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


PID_MAX_LIMIT = 4 * 1024 * 1024  # include/linux/threads.h
Identity = tuple[int, int, str, int]  # PID, start time, boot id, PID namespace


def index_order(index: str) -> tuple[int, int]:
    """Sort key of an index: ``3`` -> (3, -1), ``3:1`` (MIG instance 1 of GPU 3) -> (3, 1)."""
    gpu, _, instance = index.partition(":")
    return int(gpu), int(instance) if instance else -1


class Gpu:
    """One GPU, or one MIG instance, as a backend saw it just now.

    ``index`` is what the vendor's tools call it today (``3``, or ``3:1`` for a MIG instance) and may
    move; ``uuid`` is what it is known by. ``pci_address`` is spelt as in ``/sys/bus/pci/devices``.
    ``node`` is its device node, empty where it has none. ``mig`` are the GPU instance and the compute
    instance of a MIG device. ``fault`` says why it must not be handed
    out, empty when healthy. ``compute_pids`` are the processes that compute on it, as far as the
    backend tells.
    """

    __slots__ = ("compute_pids", "fault", "index", "mig", "name", "node", "pci_address", "uuid", "vendor")

    def __init__(
        self,
        *,
        uuid: str,
        index: str,
        pci_address: str,
        name: str,
        vendor: str,
        node: str = "",
        mig: tuple[int, int] | None = None,
        fault: str = "",
        compute_pids: tuple[int, ...] = (),
    ) -> None:
        self.uuid: Final = uuid
        self.index: Final = index
        self.pci_address: Final = pci_address
        self.name: Final = name
        self.vendor: Final = vendor
        self.node: Final = node
        self.mig: Final = mig
        self.fault: Final = fault
        self.compute_pids: Final = compute_pids

    def computing(self, pids: tuple[int, ...]) -> Gpu:
        """The same GPU with the processes that compute on it."""
        return Gpu(
            uuid=self.uuid,
            index=self.index,
            pci_address=self.pci_address,
            name=self.name,
            vendor=self.vendor,
            node=self.node,
            mig=self.mig,
            fault=self.fault,
            compute_pids=pids,
        )


class Inventory:
    """What a backend answered: GPUs in index order, and notes on those that it had to leave out."""

    __slots__ = ("backend", "gpus", "notes")

    def __init__(self, backend: str, gpus: tuple[Gpu, ...], notes: tuple[str, ...] = ()) -> None:
        self.backend: Final = backend
        self.gpus: Final = tuple(sorted(gpus, key=lambda gpu: index_order(gpu.index)))
        self.notes: Final = notes


class Owner:
    """A task executor: a process that can't be mistaken for a later one with the same PID.

    ``start_time`` is in clock ticks since boot (field 22 of ``/proc/PID/stat``, less the offset of
    the reader's time namespace), ``pid_namespace``
    the inode number of the namespace that ``pid`` counts in, ``uid`` the real user id.
    """

    __slots__ = ("boot_id", "command", "pid", "pid_namespace", "start_time", "uid")

    def __init__(self, *, pid: int, start_time: int, boot_id: str, pid_namespace: int, uid: int, command: str) -> None:
        self.pid: Final = pid
        self.start_time: Final = start_time
        self.boot_id: Final = boot_id
        self.pid_namespace: Final = pid_namespace
        self.uid: Final = uid
        self.command: Final = command

    @property
    def identity(self) -> Identity:
        """What makes two owners the same; a process may change its uid and its name."""
        return self.pid, self.start_time, self.boot_id, self.pid_namespace

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})"


class Record:
    """One line of the ledger: a GPU held by an owner for one of Flink's external resources.

    ``index`` and ``pci_address`` are those at the time of the grant, ``since`` is UTC in ISO 8601,
    ``cgroup`` is the owner's confinement, empty where there is none; ``state`` is ``held``, or while
    a confinement is being set up ``joining`` (its cgroup is new) or ``pending`` (it was there before).
    """

    __slots__ = ("cgroup", "index", "owner", "pci_address", "resource", "since", "state", "uuid")

    def __init__(
        self,
        *,
        uuid: str,
        index: str,
        pci_address: str,
        resource: str,
        owner: Owner,
        since: str,
        state: str = "held",
        cgroup: str = "",
    ) -> None:
        self.uuid: Final = uuid
        self.index: Final = index
        self.pci_address: Final = pci_address
        self.resource: Final = resource
        self.owner: Final = owner
        self.since: Final = since
        self.state: Final = state
        self.cgroup: Final = cgroup

    def confined(self, cgroup: str, state: str) -> Record:
        """The same record with the owner's confinement, in another state."""
        return Record(
            uuid=self.uuid,
            index=self.index,
            pci_address=self.pci_address,
            resource=self.resource,
            owner=self.owner,
            since=self.since,
            state=state,
            cgroup=cgroup,
        )


class Finding:
    """One of ``doctor``'s checks: its ``name``, whether it is ``ok``, a ``warning`` or a ``fault``, what was seen.

    ``exit_code`` is the one that a call would end with because of a fault.
    """

    __slots__ = ("exit_code", "mend", "name", "state", "what")

    def __init__(self, name: str, state: str, what: str, mend: str = "", exit_code: int = 0) -> None:
        self.name: Final = name
        self.state: Final = state
        self.what: Final = what
        self.mend: Final = mend
        self.exit_code: Final = exit_code
