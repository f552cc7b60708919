"""The GPUs of the host, steered by the test: a stand-in ``nvidia-smi`` that prints what stands in a file.

The lines stand in the order of the cards, not of their indexes, so that whoever reads them must sort.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tests.standins.shell import install_script

NUMBER = 6
# Some have two digits, so that sorting them as texts would show.
INDEXES = (0, 1, 2, 3, 4, 5, 9, 10, 11)
HEALTHY, VANISHED = "healthy", "vanished"
# How a card fails that is still on the bus: each line is one that must not be handed out.
FAILURES = {
    "no UUID": "{index}, [N/A], {bus}, [N/A], NVIDIA A100\n",
    "error in place of the name": "{index}, {uuid}, {bus}, [N/A], ERR!\n",
    "no handle": "Unable to determine the device handle for GPU{bus}: Unknown Error\n",
    "cut off": "{index}, {uuid}, {bus}\n",
    "MIG switched on": "{index}, {uuid}, {bus}, Enabled, NVIDIA A100\n",
    "listed twice": "{index}, {uuid}, {bus}, [N/A], NVIDIA A100\n" * 2,
}
_GOOD_LINE = "{index}, {uuid}, {bus}, [N/A], NVIDIA A100\n"
_QUERY = "--query-gpu=index,uuid,pci.bus_id,mig.mode.current,name"


@dataclass(frozen=True)
class Seen:
    """A GPU that can be handed out, as it is now."""

    uuid: str
    index: int
    pci_address: str


@dataclass(frozen=True)
class Card:
    """One physical GPU: ``state`` is HEALTHY, VANISHED or a key of FAILURES."""

    number: int
    index: int
    state: str = HEALTHY

    @property
    def uuid(self) -> str:
        return uuid_of(self.number)

    @property
    def seen(self) -> Seen:
        return Seen(self.uuid, self.index, f"0000:{0x17 + self.number:02x}:00.0")

    @property
    def line(self) -> str:
        """What ``nvidia-smi`` says of it."""
        if self.state == VANISHED:
            return ""
        shape = FAILURES.get(self.state, _GOOD_LINE)
        return shape.format(index=self.index, uuid=self.uuid, bus=f"00000000:{0x17 + self.number:02X}:00.0")


def uuid_of(number: int) -> str:
    """Made so that their order is that of the cards turned round."""
    return f"GPU-{0xFFFF - number:08x}-0000-4000-8000-000000000000"


class Cards:
    """All of them, and the folder for PATH in which their ``nvidia-smi`` lies."""

    def __init__(self, folder: Path) -> None:
        self._answer = folder / "answer"
        lines = (
            f'[ "$1" = "{_QUERY}" ] || exit 2',
            f"while IFS= read -r line; do printf '%s\\n' \"$line\"; done <'{self._answer}'",
        )
        install_script(folder, "nvidia-smi", lines)
        self._cards = [Card(number, number) for number in range(NUMBER)]
        self._write()

    def healthy(self) -> list[Seen]:
        """Those that can be handed out now."""
        return [card.seen for card in self._cards if card.state == HEALTHY]

    def in_state(self, *states: str) -> list[int]:
        """The numbers of the cards that are in one of these states."""
        return [card.number for card in self._cards if card.state in states]

    def free_indexes(self) -> list[int]:
        """Indexes that no card on the bus has."""
        taken = {card.index for card in self._cards if card.state != VANISHED}
        return [index for index in INDEXES if index not in taken]

    def put(self, number: int, state: str) -> None:
        """Change a card's state."""
        self._cards[number] = replace(self._cards[number], state=state)
        self._write()

    def put_back(self, number: int, index: int) -> None:
        """A card returns to the bus under a free index."""
        self._cards[number] = replace(self._cards[number], state=HEALTHY, index=index)
        self._write()

    def renumber(self, indexes: list[int]) -> None:
        """Every card gets another index, as after a reset of the driver."""
        self._cards = [replace(card, index=index) for card, index in zip(self._cards, indexes)]
        self._write()

    def _write(self) -> None:
        self._answer.write_text("".join([card.line for card in self._cards]), encoding="ascii")
