"""What every operation works with."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

    from flink_gpu_discovery.host import Deadline, Host
    from flink_gpu_discovery.options import Options
    from flink_gpu_discovery.processes import Processes


class Context:
    """One call: the host, the caller's environment, the settled options and the time left."""

    __slots__ = ("deadline", "environment", "host", "options", "processes")

    def __init__(
        self,
        *,
        host: Host,
        environment: Mapping[str, str],
        options: Options,
        deadline: Deadline,
        processes: Processes,
    ) -> None:
        self.host: Final = host
        self.environment: Final = environment
        self.options: Final = options
        self.deadline: Final = deadline
        self.processes: Final = processes
