"""Limits how many events a second a runner sends, by its share of the project's quota."""

import time
from collections.abc import Callable

from jobs.messages.event_cost import MESSAGE_COST

BURST_SECONDS = 5.0
"""A run may send the events of this time at once after a pause."""
SHORTEST_PAUSE = 0.05
"""Reading is paused for at least this time, so that a slow run does not wake the worker for every message."""


class EventPace:
    """A token bucket, filled at `rate` events a second. It has no limit until a rate is set.

    Args:
        clock: a monotonic clock in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._rate: float | None = None
        self._is_lifted = False
        self._level = 0.0
        self._filled_at = self._measured_since = clock()
        self._spent = 0

    def set_rate(self, rate: float | None) -> None:
        """Allow this many events a second from now on; None allows any number."""
        self._fill()
        if self._rate is None and rate is not None:
            self._level = rate * BURST_SECONDS
        self._rate = rate

    def lift(self) -> None:
        """Lift the limit, because the run was asked to end."""
        self._is_lifted = True

    def spend(self, cost: int) -> None:
        """Count events that were received."""
        self._spent += cost
        if self._rate is not None:
            self._fill()
            self._level -= cost

    def delay(self) -> float:
        """Return the seconds after which further events may be received; 0 if they may be now."""
        if self._rate is None or self._is_lifted:
            return 0.0
        self._fill()
        return 0.0 if self._level >= 0 else max(SHORTEST_PAUSE, -self._level / self._rate)

    def has_room_for_message(self) -> bool:
        """Return whether one more message may be recorded now."""
        if self._rate is None or self._is_lifted:
            return True
        self._fill()
        return self._level >= MESSAGE_COST

    def measured(self) -> int:
        """Return the events a second since the previous call."""
        now = self._clock()
        seconds = max(0.001, now - self._measured_since)
        rate = int(self._spent / seconds)
        self._spent, self._measured_since = 0, now
        return rate

    def _fill(self) -> None:
        now = self._clock()
        if self._rate is not None:
            gained = (now - self._filled_at) * self._rate
            self._level = min(self._rate * BURST_SECONDS, self._level + gained)
        self._filled_at = now
