"""Limits this process, and the time for single steps in it."""

import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

CPU_SECONDS = 20
WALL_SECONDS = 60
"""The caller may have died and would not end this process."""
MEMORY_BYTES = 3 * 2**29
FILE_BYTES = 128 * 2**20
"""Of the answer, and of each file that is written."""


class OutOfTime(Exception):
    """A step took longer than it may."""


def apply() -> None:
    """Limit this process' time, memory and files, for good."""
    os.nice(10)
    signal.alarm(WALL_SECONDS)
    for kind, most in (
        (resource.RLIMIT_CPU, CPU_SECONDS),
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))


class Budget:
    """So many CPU seconds from now on."""

    def __init__(self, seconds: float) -> None:
        self._end = time.process_time() + seconds

    @property
    def is_spent(self) -> bool:
        """Return whether no time is left."""
        return time.process_time() > self._end


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Interrupt the block after so many CPU seconds.

    Raises:
        OutOfTime: it was interrupted.
    """

    def interrupt(_: int, __: FrameType | None) -> None:
        raise OutOfTime

    previous = signal.signal(signal.SIGVTALRM, interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)
