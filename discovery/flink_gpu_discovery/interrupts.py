"""Signals that ask this program to end: what was begun is undone first.

``_signal`` is what the standard ``signal`` module wraps in enumerations; importing those takes as long as half of
a call.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]

from flink_gpu_discovery.errors import InterruptionError

_FAULTS = (_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGILL, _signal.SIGFPE)
_ENDING = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)


def raise_on_signals() -> None:
    """From now on SIGHUP, SIGINT and SIGTERM raise ``InterruptionError``, unless the caller ignores them."""
    for number in _ENDING:
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, _raise)


def ignore_signals() -> None:
    """Before the answer goes out, or while it is undone: an interruption there would leave both half done."""
    for number in _ENDING:
        _signal.signal(number, _disregard)


def ignore_relayed_signals() -> None:
    """What a caller may send through sudo or a terminal is ignored, but SIGHUP and SIGTERM, which mean to undo."""
    meant = (_signal.SIGHUP, _signal.SIGTERM, _signal.SIGCHLD, _signal.SIGKILL, _signal.SIGSTOP)
    for number in _signal.valid_signals():
        if number not in meant and number not in _FAULTS:
            _signal.signal(number, _signal.SIG_IGN)
    for number in (_signal.SIGHUP, _signal.SIGTERM):
        _signal.signal(number, _raise)  # even if the caller ignored them


def limit(seconds: float) -> None:
    """Raise ``InterruptionError`` after so long, also out of a system call that blocks (a write to a pipe, say)."""
    _signal.signal(_signal.SIGALRM, _raise_in_time)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def lift_limit() -> None:
    """What follows must not be interrupted."""
    _signal.setitimer(_signal.ITIMER_REAL, 0)


def _disregard(number: int, frame: object) -> None:
    """Instead of SIG_IGN, with which Python complains of a signal that was already on its way."""


def _raise_in_time(number: int, frame: object) -> None:
    """Not for an alarm that somebody sends before the time is over."""
    if _signal.getitimer(_signal.ITIMER_REAL)[0] == 0:
        _raise(number, frame)


def _raise(number: int, frame: object) -> None:
    ignore_signals()  # one is enough: a second would interrupt what the first one undoes
    if number == _signal.SIGALRM:
        raise InterruptionError("the deadline has passed while something blocked", "see what, then call again")
    raise InterruptionError(f"ended by signal {number} before the answer", "call again")
