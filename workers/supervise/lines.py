"""Cuts a stream of bytes into lines without ever holding more than a bound."""


class LineCutter:
    """Feed it chunks; it returns whole lines, each cut to `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[: self._limit]  # of a line too long, only the beginning is kept
        return [line[: self._limit] for line in lines]

    def rest(self) -> bytes:
        """Return and forget the unfinished line."""
        rest, self._rest = self._rest, b""
        return rest
