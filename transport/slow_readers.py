"""Finds clients that read their responses too slowly: unread responses keep memory and threads."""

from typing import Any

# A client that reads less than this on average, over this long without a break, is disconnected.
WRITE_SECONDS = 60.0
WRITE_BYTES_PER_SECOND = 8 * 2**10


class ReadingRate:
    """Measures how fast a connection's client reads data that the kernel did not take at once."""

    def __init__(self) -> None:
        # Since when something waits to be read, and how much was read before; None while nothing waits.
        self._since: float | None = None
        self._read = 0

    def is_too_slow(self, transport: Any, now: float) -> bool:
        """Return whether the client has read too little. Call it once per second.

        Args:
            transport: a `LingeringTransport`, or one that passes its attributes on.
            now: the event loop's time.
        """
        unread = transport.get_write_buffer_size()
        read = transport.written - unread
        if not unread:
            self._since = None
            return False
        if self._since is None:
            self._since, self._read = now, read
            return False
        if now - self._since <= WRITE_SECONDS:
            return False
        is_slow = bool(read - self._read <= WRITE_SECONDS * WRITE_BYTES_PER_SECOND)
        self._since, self._read = now, read
        return is_slow
