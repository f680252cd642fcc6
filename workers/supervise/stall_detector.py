"""Notices a run that is alive but goes nowhere, by the progress it no longer makes."""

import statistics
import time
from collections import deque

from workers.supervise.timing import Timing

GAPS_KEPT = 256


class Silence:
    """How long a run has made no progress, and how long it may.

    Before the first progress stand imports, data and compilation: that has a limit of its own. After it,
    a run may be silent for `max(silence, silence_factor × its median gap)`.
    """

    def __init__(self, timing: Timing) -> None:
        self._timing = timing
        self._last = time.monotonic()
        self._gaps: deque[float] = deque(maxlen=GAPS_KEPT)
        self._started = False

    def broken(self) -> None:
        """The run made progress."""
        now = time.monotonic()
        if self._started:
            self._gaps.append(now - self._last)
        self._started = True
        self._last = now

    def begin_anew(self) -> None:
        """Another training begins, with data and compilation before its first progress."""
        self._started = False
        self.forgive()

    def forgive(self) -> None:
        """Begin to count anew: we ourselves stood still, so the silence says nothing."""
        self._last = time.monotonic()

    @property
    def seconds(self) -> float:
        """How long it has lasted."""
        return time.monotonic() - self._last

    @property
    def allowed(self) -> float:
        """How long it may last."""
        if not self._started:
            return max(self._timing.first_progress, self._timing.silence)
        median = statistics.median(self._gaps) if self._gaps else 0.0
        return max(self._timing.silence, self._timing.silence_factor * median)

    @property
    def too_long(self) -> bool:
        """Whether this is a hang."""
        return self.seconds > self.allowed
