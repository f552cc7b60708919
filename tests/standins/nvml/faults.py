"""What goes wrong in a scenario, as immutable values that render its lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Window:
    """When a fault is there: for the first so many initialisations, or the first so many milliseconds.

    Both are counted over all processes that use the scenario file, from the first initialisation on.
    """

    kind: Literal["first-inits", "first-ms"]
    size: int

    def render(self) -> str:
        return f"{self.kind} {self.size}"


def first_inits(count: int) -> Window:
    return Window("first-inits", count)


def first_ms(milliseconds: int) -> Window:
    return Window("first-ms", milliseconds)


@dataclass(frozen=True)
class Fault:
    """One line; ``gpu`` is a place in the scenario's order or the UUID of a GPU or MIG instance."""

    kind: Literal["fail", "sleep", "hang", "hang-hard", "crash"]
    call: str
    gpu: int | str | None = None
    value: str | None = None
    window: Window | None = None

    def render(self) -> str:
        words = [self.kind, self.call]
        if self.gpu is not None:
            words.append(str(self.gpu))
        if self.value is not None:
            words.append(self.value)
        if self.window is not None:
            words.append(self.window.render())
        return " ".join(words)


def fail(call: str, error: str, gpu: int | str | None = None, *, window: Window | None = None) -> Fault:
    """The call returns an error, say ``NVML_ERROR_GPU_IS_LOST``; ``*`` stands for every call."""
    return Fault("fail", call, gpu, error, window)


def sleep(call: str, milliseconds: int, gpu: int | str | None = None, *, window: Window | None = None) -> Fault:
    """The call takes so much longer."""
    return Fault("sleep", call, gpu, str(milliseconds), window)


def hang(call: str, gpu: int | str | None = None, *, hard: bool = False, window: Window | None = None) -> Fault:
    """The call never returns; when ``hard``, its thread heeds no signal but SIGKILL."""
    return Fault("hang-hard" if hard else "hang", call, gpu, None, window)


def crash(call: str, gpu: int | str | None = None, *, window: Window | None = None) -> Fault:
    """The call ends the process with SIGSEGV."""
    return Fault("crash", call, gpu, None, window)
