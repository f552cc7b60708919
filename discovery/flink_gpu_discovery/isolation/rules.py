"""Which device nodes an owner may open: pure decisions on what was found on the host."""

from __future__ import annotations

from flink_gpu_discovery.errors import SystemRefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Final

    Number = tuple[int, int]  # major, minor


class DeviceNode:
    """A character device: its path and the numbers that the kernel knows it by."""

    __slots__ = ("major", "minor", "path")

    def __init__(self, path: str, major: int, minor: int) -> None:
        self.path: Final = path
        self.major: Final = major
        self.minor: Final = minor

    @property
    def number(self) -> Number:
        """What a device cgroup compares."""
        return self.major, self.minor


class Survey:
    """The GPU nodes of a host.

    ``of_gpu`` are the nodes of each GPU by its UUID; ``existing`` are all nodes of GPU classes that are there, of
    whatever GPU; ``shared`` are control nodes that belong to a class and stay open; ``classes`` are the majors of which
    every minor is a GPU's or shared, so that one that comes later is a GPU's, too.
    """

    __slots__ = ("classes", "existing", "of_gpu", "shared")

    def __init__(
        self,
        *,
        of_gpu: Mapping[str, tuple[DeviceNode, ...]],
        existing: tuple[DeviceNode, ...],
        shared: tuple[DeviceNode, ...],
        classes: frozenset[int],
    ) -> None:
        self.of_gpu: Final = of_gpu
        self.existing: Final = existing
        self.shared: Final = shared
        self.classes: Final = classes


class Rules:
    """What one owner may open.

    Of the majors in ``classes`` the ``allowed`` numbers and no others, known or not; of every other major all but the
    ``denied`` numbers, which also list the known ones of the classes. Both ascending.
    """

    __slots__ = ("allowed", "allowed_nodes", "classes", "denied", "denied_nodes")

    def __init__(
        self, *, classes: frozenset[int], allowed: tuple[DeviceNode, ...], denied: tuple[DeviceNode, ...]
    ) -> None:
        self.classes: Final = tuple(sorted(classes))
        self.allowed_nodes: Final = allowed
        self.denied_nodes: Final = denied
        self.allowed: Final = tuple(sorted({node.number for node in allowed}))
        self.denied: Final = tuple(sorted({node.number for node in denied}))

    def allows(self, major: int, minor: int) -> bool:
        """What a kernel that enforces them answers."""
        if major in self.classes:
            return (major, minor) in self.allowed
        return (major, minor) not in self.denied


def rules_for(survey: Survey, uuids: Iterable[str]) -> Rules:
    """The rules for the holder of these GPUs; of no GPU at all where ``uuids`` is empty.

    A UUID that the survey doesn't know allows nothing. ``SystemRefusedError`` if a node of one of them is also
    that of another GPU which isn't among them, so that allowing the one would open the other.
    """
    mine = set(uuids)
    own = {node.number: node for uuid in mine for node in survey.of_gpu.get(uuid, ())}
    others = {node.number: node for uuid, nodes in survey.of_gpu.items() if uuid not in mine for node in nodes}
    shared = {node.number: node for node in survey.shared}
    _check_told_apart(survey, mine)
    allowed = {**shared, **own}
    denied = {**others, **{node.number: node for node in survey.existing}}
    return Rules(
        classes=survey.classes,
        allowed=tuple([node for _, node in sorted(allowed.items())]),
        denied=tuple([node for number, node in sorted(denied.items()) if number not in allowed]),
    )


def _check_told_apart(survey: Survey, mine: set[str]) -> None:
    """Each of the owner's GPUs must have a node that no other's has; only MIG instances share one beside it."""
    users: dict[Number, set[str]] = {}
    for uuid, nodes in survey.of_gpu.items():
        for node in nodes:
            users.setdefault(node.number, set()).add(uuid)
    for uuid, nodes in survey.of_gpu.items():
        single = [node for node in nodes if users[node.number] == {uuid}]
        doubly = [node for node in nodes if users[node.number] != {uuid}]
        if doubly and (not single or not uuid.startswith("MIG-")) and users[doubly[0].number] & mine:
            names = ", ".join(sorted(users[doubly[0].number])[:4])
            raise SystemRefusedError(
                f"{doubly[0].path} (device {doubly[0].major}:{doubly[0].minor}) belongs to several GPUs: {names}",
                "they can't be kept apart by device; see how the nodes were made",
            )
