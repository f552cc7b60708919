"""What can be seen of a host from outside, with roles in the place of process ids, so that two hosts compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

Line = tuple[str, str, str, str]  # GPU, resource, role of the owner, state


@dataclass(frozen=True)
class Process:
    """A process by its role: the cgroup that it is in (``caller/confined``), and the GPUs that it can open."""

    role: str
    cgroup: str
    opens: str

    @property
    def confined_as(self) -> str:
        """The owner in whose confinement it is; empty if it is in none."""
        role, _, rest = self.cgroup.partition("/")
        return role if rest else ""


@dataclass(frozen=True)
class Observation:
    """The ledger's records (None: no file), the cgroups under names of ours, the processes, and stray files."""

    records: tuple[Line, ...] | None
    confinements: tuple[str, ...]
    processes: tuple[Process, ...]
    strays: tuple[str, ...]

    def recorded(self) -> dict[str, str]:
        """The owner of each recorded GPU."""
        return {gpu: role for gpu, _, role, _ in self.records or ()}

    def interim(self, before: Observation, state: str) -> tuple[Line, ...]:
        """The records while what is new since ``before`` is not held yet."""
        known = before.records or ()
        return tuple([line if line in known else (*line[:3], state) for line in self.records or ()])

    def without_strays(self) -> Observation:
        """The same without files beside the ledger and without cgroups that are empty and not recorded."""
        owners = {*self.recorded().values(), *[process.confined_as for process in self.processes]}
        return replace(self, strays=(), confinements=tuple([role for role in self.confinements if role in owners]))

    def trespasses(self) -> Iterator[str]:
        """Each GPU that a confined process can open though the ledger doesn't say that its owner holds it."""
        holders = self.recorded()
        for process in self.processes:
            for gpu in process.opens if process.confined_as else "":
                if holders.get(gpu) != process.confined_as:
                    yield f"{process.role} can open GPU {gpu}, which is held by {holders.get(gpu, 'nobody')}"


def differences(seen: Observation, wanted: Observation) -> list[str]:
    """Where two differ, in words."""
    pairs: list[tuple[str, object, object]] = [
        ("the records are", seen.records, wanted.records),
        ("confinements:", seen.confinements, wanted.confinements),
        ("files:", seen.strays, wanted.strays),
    ]
    pairs += [(f"{one.role} is", one, other) for one, other in zip(seen.processes, wanted.processes)]
    return [f"{what} {one}, not {other}" for what, one, other in pairs if one != other]
