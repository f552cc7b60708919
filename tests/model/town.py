"""The owners as they really are, as far as the test had them start and end: who lives, who was told what."""

from __future__ import annotations

from collections.abc import Iterable

from tests.model.values import ALIVE, DEAD, UNPROVABLE, Owner

PIDS = (300, 301, 302, 303)  # few, so that most owners get the PID of a dead one


class Town:
    """Owners by PID: running ones, those without their main thread among them, and zombies."""

    def __init__(self, boot_id: str, pid_namespace: int) -> None:
        self._boot_id = boot_id
        self._pid_namespace = pid_namespace
        self._told: dict[str, Owner] = {}
        self.running: dict[int, Owner] = {}
        self.without_main_thread: set[int] = set()
        self.zombies: set[int] = set()

    def free_pids(self) -> list[int]:
        """PIDs that no process has."""
        return [pid for pid in PIDS if pid not in self.running and pid not in self.zombies]

    def whole_pids(self) -> list[int]:
        """PIDs of owners that still have their main thread."""
        return [pid for pid in self.running if pid not in self.without_main_thread]

    def begin(self, owner: Owner) -> None:
        """It runs now."""
        self.running[owner.pid] = owner

    def end(self, pid: int) -> None:
        """It was killed, and is a zombie."""
        del self.running[pid]
        self.without_main_thread.discard(pid)
        self.zombies.add(pid)

    def liveness(self, owner: Owner) -> str:
        """What can be proven of a recorded owner from inside the namespace."""
        if owner.boot_id != self._boot_id:
            return DEAD
        if owner.pid_namespace != self._pid_namespace:
            return UNPROVABLE
        return ALIVE if self.running.get(owner.pid) == owner else DEAD

    def tell(self, owner: Owner, uuids: Iterable[str]) -> None:
        """The owner was told that these GPUs are its own; asserts that no other live owner was told so."""
        for uuid in uuids:
            before = self._told.get(uuid)
            assert before in (None, owner) or before not in self.running.values(), f"{uuid}: {before} and {owner}"
            self._told[uuid] = owner

    def untell(self, uuids: Iterable[str]) -> None:
        """These were given back, or taken away by force: their owners know no better, but it was meant so."""
        for uuid in uuids:
            self._told.pop(uuid, None)
