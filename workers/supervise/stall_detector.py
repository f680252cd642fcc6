"""Watchdog for runs that are alive but make no progress."""

import statistics
import time
from collections import deque

from workers.supervise.timing import Timing

MAX_GAPS = 256


class StallDetector:
    """Compares the time since the last progress with a limit.

    Before the first progress come imports, data and compilation, so that time has its own limit. Afterwards
    the limit is `max(silence, silence_factor × median gap between progress events)`.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._last = time.monotonic()
        self._gaps: deque[float] = deque(maxlen=MAX_GAPS)
        self._has_progressed = False

    def progress_made(self) -> None:
        now = time.monotonic()
        if self._has_progressed:
            self._gaps.append(now - self._last)
        self._has_progressed = True
        self._last = now

    def restart(self) -> None:
        """Start again for another training, which prepares data and compiles before its first progress."""
        self._has_progressed = False
        self.reset_timer()

    def reset_timer(self) -> None:
        """Count the time without progress from now on."""
        self._last = time.monotonic()

    @property
    def seconds_silent(self) -> float:
        return time.monotonic() - self._last

    @property
    def limit(self) -> float:
        if not self._has_progressed:
            return max(self._timing.first_progress, self._timing.silence)
        median = statistics.median(self._gaps) if self._gaps else 0.0
        return max(self._timing.silence, self._timing.silence_factor * median)

    @property
    def stalled(self) -> bool:
        return self.seconds_silent > self.limit
