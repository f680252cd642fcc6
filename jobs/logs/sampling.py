"""Chooses the requests that have a line in the access log."""

import threading


class Sampler:
    """Chooses a share of all calls, evenly.

    Args:
        share: from 0, none, to 1, all.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._due = 0.0
        self._lock = threading.Lock()

    def chooses(self) -> bool:
        """Return whether this call is one of them."""
        if self._share >= 1 or self._share <= 0:
            return self._share >= 1
        with self._lock:
            self._due += self._share
            if self._due < 1:
                return False
            self._due -= 1
            return True
