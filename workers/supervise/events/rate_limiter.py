"""Limits a rate: a burst at first, then one step each interval."""

import time
from collections.abc import Callable


class RateLimiter:
    """Computes the seconds to wait after each step, such as a commit.

    The generic cell rate algorithm (ITU-T I.371, annex A): at most one step each `interval` on average, and
    up to `burst` steps at once after a pause.

    Args:
        interval: seconds per step.
        burst: steps at once; 1 means no burst.
        clock: a monotonic clock in seconds.
    """

    def __init__(self, interval: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._slack = (burst - 1) * interval
        self._clock = clock
        self._next_step = -float("inf")

    def delay_after(self, began: float) -> float:
        """Return the seconds to wait before the next step, after a step that began at `began`."""
        self._next_step = max(self._next_step, began) + self._interval
        return max(0.0, self._next_step - self._slack - self._clock())
