"""Options as one source gives them: texts, each with the place it was written at, and the error to blame on it."""

from __future__ import annotations

from flink_gpu_discovery.errors import DiscoveryError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final

_YES = ("1", "on", "true", "yes")
_NO = ("0", "false", "no", "off")


class Given:
    """Option texts of one source, each with the place it was written at, and the error to blame on it."""

    __slots__ = ("_places", "_texts", "error")

    def __init__(self, error: type[DiscoveryError]) -> None:
        self.error: Final = error
        self._texts: Final[dict[str, str]] = {}
        self._places: Final[dict[str, str]] = {}

    def add(self, name: str, text: str, place: str) -> bool:
        """Note an option; False if it was there already."""
        if name in self._texts:
            return False
        self._texts[name] = text
        self._places[name] = place
        return True

    def text(self, name: str) -> str | None:
        """An option's text as written."""
        return self._texts.get(name)

    def has(self, name: str) -> bool:
        """Whether this source gives the option."""
        return name in self._texts

    def names(self) -> tuple[str, ...]:
        """The options that this source gives."""
        return tuple(self._texts)

    def refuse(self, name: str, expected: str) -> DiscoveryError:
        """The error for a text that means nothing."""
        text = self._texts[name]
        shown = text if len(text) <= 60 else text[:60] + "..."
        return self.error(f"{self._places[name]}: bad value {shown!r}", f"give {expected}")

    def yes(self, name: str) -> bool | None:
        """A yes/no option; None where it isn't given."""
        text = self._texts.get(name)
        if text is None:
            return None
        if text.lower() in _YES:
            return True
        if text.lower() in _NO:
            return False
        raise self.refuse(name, "yes or no")

    def coordinates(self) -> bool | None:
        """``coordinate``, which some other options imply; None where this source says nothing of it."""
        implied_by = [name for name in ("check-dead", "isolate", "enable-coordination-mode") if self.yes(name)]
        if self.has("ledger"):
            implied_by.append("ledger")
        explicit = self.yes("coordinate")
        if explicit is False and implied_by:
            raise self.refuse("coordinate", f"yes, or leave out {', '.join(implied_by)}")
        return True if implied_by else explicit
