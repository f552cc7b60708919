"""AMD GPUs through ``rocm-smi --json``, where the KFD topology can't be read."""

from __future__ import annotations

import json

from flink_gpu_discovery import bounded
from flink_gpu_discovery.errors import SystemRefusedError
from flink_gpu_discovery.gpus import amd, tools
from flink_gpu_discovery.gpus.pci import hexadecimal, normal_address
from flink_gpu_discovery.models import Gpu, Inventory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_USUAL = ("/opt/rocm/bin", "/usr/bin", "/usr/local/bin")
_ARGUMENTS = ("--showuniqueid", "--showbus", "--showproductname", "--json")


def query(environment: Mapping[str, str], seconds: float) -> Inventory:
    """Run it for at most ``seconds``; ``SystemRefusedError`` if its answer is no use."""
    path = tools.find("rocm-smi", environment, _USUAL)
    answered = bounded.run_tool("rocm-smi", path, _ARGUMENTS, seconds)
    if answered.flooded:
        raise SystemRefusedError(f"{path} printed more than 1 MiB", "find out what it is")
    gpus, notes = parse(answered.output)
    if not gpus and (answered.status != 0 or notes):
        complaint = " ".join([*notes, *answered.errors.split("\n")])
        raise SystemRefusedError(f"rocm-smi: status {answered.status}: {complaint[:200]}", "see 'rocm-smi' and 'dmesg'")
    return Inventory("rocm-smi", gpus, tuple([f"rocm-smi: {note}" for note in notes]))


def parse(output: str) -> tuple[tuple[Gpu, ...], tuple[str, ...]]:
    """The cards of the JSON object in ``output`` (warnings may stand before it), and notes on unusable ones."""
    start = output.find("{")
    try:
        cards = json.loads(output[start:] if start >= 0 else output)
    except (ValueError, RecursionError):
        return (), (f"no JSON in {output[:120]!r}",)
    gpus, notes = [], []
    for card, values in cards.items() if isinstance(cards, dict) else ():
        number = card.removeprefix("card")
        if number == card or not number.isdigit() or not isinstance(values, dict):
            continue  # "system" and the like
        try:
            gpus.append(_gpu(number, {str(key).lower(): str(value) for key, value in values.items()}))
        except (KeyError, ValueError) as error:
            notes.append(f"{card[:20]} is left out: {error!r}"[:120])
    return tuple(gpus), tuple(notes[:8])


def _gpu(number: str, values: dict[str, str]) -> Gpu:
    """The keys' capitals differ between releases ("Card series", "Card Series")."""
    address = normal_address(values["pci bus"])
    unique_id = values.get("unique id", "N/A")
    name = values.get("card series") or values.get("card model") or "AMD GPU"
    return Gpu(
        uuid=amd.uuid(0 if unique_id in ("N/A", "") else hexadecimal(unique_id.removeprefix("0x"), 16), address),
        index=str(int(number)),
        pci_address=address,
        name=name,
        vendor="amd",
    )
