"""The one line that Flink reads: ids, comma-separated, ascending by index."""

from __future__ import annotations

from flink_gpu_discovery.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from flink_gpu_discovery.models import Gpu

# Flink reads its pipes only after the script has ended.
_LARGEST_BYTES = 4096


def line(gpus: tuple[Gpu, ...], id_kind: str) -> str:
    """The line for GPUs in index order; ``id_kind`` is ``index`` or ``uuid``."""
    return join(tuple([gpu.uuid if id_kind == "uuid" else gpu.index for gpu in gpus]), id_kind)


def join(ids: tuple[str, ...], id_kind: str) -> str:
    """The line with these ids; ``UsageError`` if it is more than Flink could take."""
    text = ",".join(ids) + "\n"
    if len(text) > _LARGEST_BYTES:
        mend = "use --id index" if id_kind == "uuid" else "ask for fewer"
        raise UsageError(f"the answer would take {len(text)} bytes, {_LARGEST_BYTES} at most", mend)
    return text
