"""How often something may be done: a few times at once, then one each interval."""

import time
from collections.abc import Callable


class Pace:
    """Gives the seconds to wait after each turn.

    The generic cell rate algorithm (ITU-T I.371, annex A): turns come on average one each `interval` at most,
    up to `burst` of them at once after a rest.

    Args:
        interval: seconds.
        burst: at least 1, which is no burst.
        clock: seconds that only grow.
    """

    def __init__(self, interval: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval = interval
        self._slack = (burst - 1) * interval
        self._clock = clock
        self._due = -float("inf")

    def taken(self, began: float) -> float:
        """Return how long to wait before the next turn, now that one which began then is over."""
        self._due = max(self._due, began) + self._interval
        return max(0.0, self._due - self._slack - self._clock())
