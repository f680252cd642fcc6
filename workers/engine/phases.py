"""Announces a training's phases without steps, such as compiling, to a listener."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from jobs.messages.events import PhaseName

Listener = Callable[[PhaseName], None]
INTERVAL = 5.0
"""Seconds after which a phase is announced again."""
_LISTENER: ContextVar[Listener | None] = ContextVar("_LISTENER", default=None)


@contextmanager
def announced_to(listener: Listener) -> Iterator[None]:
    """Return a context in which `listener` is called when a phase begins.

    Trainings with different reports share programs, so a program has no report.
    """
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def announce(phase: PhaseName) -> None:
    """Inform the listener, if any, that a phase begins. It lasts until the next progress or phase."""
    if (listener := _LISTENER.get()) is not None:
        listener(phase)


class Repeated:
    """Announces a phase again while it lasts: work whose duration depends on the data may take long."""

    def __init__(self, phase: PhaseName) -> None:
        self._phase: PhaseName = phase
        self._last = time.monotonic()

    def __call__(self) -> None:
        """Announce the phase, unless that was done a short time ago."""
        if time.monotonic() - self._last >= INTERVAL:
            self._last = time.monotonic()
            announce(self._phase)
