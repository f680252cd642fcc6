"""Reports how far a move is, and how long it takes still."""

import time
from collections.abc import Callable

PAUSE = 5.0
"""Seconds between two reports."""


class Progress:
    """Counts steps and reports now and then.

    Args:
        total: the number of steps.
        report: writes a line.
        now: returns seconds.
    """

    def __init__(
        self, total: int, report: Callable[[str], None], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._total, self._report, self._now = total, report, now
        self._done = 0
        self._begin = self._last = now()

    def step(self, what: str) -> None:
        """Count a step; `what` is done at present."""
        self._done += 1
        # The clock is not asked for each row.
        if self._done % 256 and self._done != self._total:
            return
        now = self._now()
        if now - self._last < PAUSE:
            return
        self._last = now
        left = (now - self._begin) / self._done * max(0, self._total - self._done)
        share = 100 * self._done // max(1, self._total)
        self._report(f"{what}: {share} % of the move, about {_words(left)} left.")


def _words(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"
