"""What every operation works with."""

from __future__ import annotations

from flink_gpu_discovery.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from flink_gpu_discovery.callers import Caller
    from flink_gpu_discovery.host import Deadline, Host
    from flink_gpu_discovery.models import Owner
    from flink_gpu_discovery.options import Options
    from flink_gpu_discovery.processes import Processes


class Context:
    """One call: the host, who calls with what environment, the settled options and the time left."""

    __slots__ = ("caller", "deadline", "environment", "host", "options", "processes")

    def __init__(
        self,
        *,
        host: Host,
        caller: Caller,
        environment: Mapping[str, str],
        options: Options,
        deadline: Deadline,
        processes: Processes,
    ) -> None:
        self.host: Final = host
        self.caller: Final = caller
        self.environment: Final = environment
        self.options: Final = options
        self.deadline: Final = deadline
        self.processes: Final = processes

    def check_caller(self, owner: Owner) -> None:
        """``UsageError`` unless the chain stands and the owner lives; a PID alone could be somebody else's by now."""
        self.caller.check()
        if not self.processes.is_alive(owner):
            raise UsageError(f"{owner} has ended meanwhile", "nothing was recorded")

    def owner(self) -> Owner:
        """The task executor on whose behalf this is; ``UsageError`` if it can't own GPUs."""
        owner = self.processes.owner(self.caller.owner_pid)
        if self.caller.uid not in (None, owner.uid):
            raise UsageError(
                f"{owner} belongs to uid {owner.uid}, the caller is uid {self.caller.uid}",
                "a task executor asks for itself",
            )
        return owner
