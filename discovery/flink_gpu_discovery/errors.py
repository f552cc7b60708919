"""The one error tree: every error knows its exit code (``sysexits.h`` numbers) and how to mend it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class ToldError(Exception):
    """What ends a call, told in one line: ``what`` is wrong with the values seen, ``mend`` what to do about it."""

    exit_code = 1

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(what)
        self.what: Final = what
        self.mend: Final = mend

    def __str__(self) -> str:
        return f"{self.what}; {self.mend}" if self.mend else self.what


class DiscoveryError(ToldError):
    """Something that this program ran into, and may go round where it knows another way."""


class InterruptionError(ToldError):
    """A signal, or the time that is over: nothing is gone round, all is undone."""

    exit_code = 75


class LookAgainError(Exception):
    """What this call saw of the GPUs can't be trusted: it was moved into a confinement meanwhile. Told to nobody."""


class UsageError(DiscoveryError):
    """Unknown option, bad amount, or an owner that can't be one."""

    exit_code = 64


class LedgerDamagedError(DiscoveryError):
    """The ledger's content can't be trusted; it is kept as it is."""

    exit_code = 65


class TooFewGpusError(DiscoveryError):
    """Fewer GPUs can be handed out than were asked for."""

    exit_code = 69


class SystemRefusedError(DiscoveryError):
    """No driver, a driver that answers with an error, or a kernel that refuses."""

    exit_code = 71


class NoDriverError(SystemRefusedError):
    """There is no driver at all, or nothing to ask it with and no sign of one."""


class InputOutputError(DiscoveryError):
    """The ledger or the answer could not be written or read."""

    exit_code = 74


class TryAgainError(DiscoveryError):
    """The lock or the GPU query did not answer before the deadline."""

    exit_code = 75


class PermissionRefusedError(DiscoveryError):
    """The caller may not do this."""

    exit_code = 77


class SettingsError(DiscoveryError):
    """The settings file can't be used."""

    exit_code = 78
