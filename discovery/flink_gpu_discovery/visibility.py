"""Which GPUs the caller's environment lets it see.

``NVIDIA_VISIBLE_DEVICES`` (container toolkit), ``CUDA_VISIBLE_DEVICES`` (CUDA programming guide) and
``ROCR_VISIBLE_DEVICES`` (ROCm) narrow what is visible; together they narrow further. HIP's variable counts
within ROCR's selection, so it is left to the job.
"""

from __future__ import annotations

from flink_gpu_discovery.errors import UsageError
from flink_gpu_discovery.models import Gpu

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES = {
    "NVIDIA_VISIBLE_DEVICES": ("nvidia", "simulated"),
    "CUDA_VISIBLE_DEVICES": ("nvidia", "simulated"),
    "ROCR_VISIBLE_DEVICES": ("amd", "simulated"),
}
# What tells NVIDIA's container runtime that the devices were granted by other means, CDI or mounts: those in the
# container are the grant (container toolkit's pull request 395; the device plugin's "volume-mounts").
_GRANTED_OTHERWISE = ("NVIDIA_VISIBLE_DEVICES=void", "NVIDIA_VISIBLE_DEVICES=/var/run/nvidia-container-devices")
_NOTHING = ("", "none", "void", "-1", "NoDevFiles")


def narrow(gpus: tuple[Gpu, ...], environment: Mapping[str, str]) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """The GPUs that every set variable names, and a note for each variable that hid one or named none.

    An entry is an index, a UUID or the unambiguous start of one (``GPU-…``, ``MIG-…``), or as the whole value
    ``all``, ``none``, ``void`` or nothing. ``UsageError`` for anything else. NVIDIA's ``void`` hides nothing.
    """
    notes = []
    for variable, vendors in VARIABLES.items():
        value = environment.get(variable, "all").strip()
        concerned = tuple([gpu for gpu in gpus if gpu.vendor in vendors])
        if value == "all" or not concerned or f"{variable}={value}" in _GRANTED_OTHERWISE:
            continue
        named, unknown = _named(concerned, value, variable)
        if len(named) < len(concerned) or unknown:
            notes.append(_note(variable, value, len(named), len(concerned), unknown))
        gpus = tuple([gpu for gpu in gpus if gpu.uuid in named or gpu.vendor not in vendors])
    return gpus, tuple(notes)


def _named(gpus: tuple[Gpu, ...], value: str, variable: str) -> tuple[set[str], list[str]]:
    """The UUIDs that ``value`` names among ``gpus``, and its entries that name none of them."""
    named: set[str] = set()
    unknown: list[str] = []
    for entry in [] if value in _NOTHING else [part.strip() for part in value.split(",")]:
        if entry == "-1" or entry in ("none", "void"):
            break  # CUDA: what follows an invalid entry is invisible
        matches = _matches(gpus, entry, variable)
        named.update(matches)
        if not matches:
            unknown.append(entry)
    return named, unknown


def _matches(gpus: tuple[Gpu, ...], entry: str, variable: str) -> list[str]:
    if entry.isascii() and entry.replace(":", "", 1).isdigit() and len(entry) <= 9:
        return [gpu.uuid for gpu in gpus if gpu.index == entry or gpu.index.startswith(f"{entry}:")]
    if not entry.startswith(("GPU-", "MIG-")):
        raise UsageError(
            f"{variable} has the entry {entry[:60]!r}",
            "list indexes, GPU-... or MIG-... UUIDs, or set all, none or void",
        )
    matches = [gpu.uuid for gpu in gpus if gpu.uuid.lower().startswith(entry.lower())]
    if len(matches) > 1:
        raise UsageError(f"{variable}: {entry[:60]!r} is the start of {len(matches)} UUIDs", "write it out")
    return matches


def _note(variable: str, value: str, kept: int, among: int, unknown: list[str]) -> str:
    absent = f"; not on this host: {','.join(unknown)[:80]}" if unknown else ""
    return f"{variable}={value[:80]!r} shows {kept} of {among} GPUs{absent}"
