"""Computes retry delays: exponential backoff with jitter."""

import random


class Backoff:
    """The seconds to wait before each further try: doubled each time up to `limit`, with jitter."""

    def __init__(self, first: float, limit: float) -> None:
        self._first = first
        self._limit = limit
        self._tries = 0

    def next(self) -> float:
        # The exponent is limited because 2.0 ** 1024 raises OverflowError, after a long outage.
        delay = min(self._limit, self._first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return delay * random.uniform(0.75, 1.0)  # noqa: S311  spreads load; not for security

    def reset(self) -> None:
        """Start again at the first delay."""
        self._tries = 0
