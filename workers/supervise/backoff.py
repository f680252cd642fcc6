"""Waits that grow."""

import random


class Backoff:
    """Gives the seconds to wait before each further try: doubled each time, up to `limit`, with jitter."""

    def __init__(self, first: float, limit: float) -> None:
        self._first = first
        self._limit = limit
        self._tries = 0

    def next(self) -> float:
        """Return the next wait."""
        wait = min(self._limit, self._first * 2.0 ** min(self._tries, 30))
        self._tries += 1
        return wait * random.uniform(0.75, 1.0)  # noqa: S311  spreads load, guards nothing

    def reset(self) -> None:
        """All is well again."""
        self._tries = 0
