"""Splits a byte stream into lines with bounded memory."""


class LineSplitter:
    """Takes chunks and returns complete lines, each cut to `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = b""

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that `chunk` completes, without their newlines."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        # Only the beginning of an overlong line is kept, so that a program cannot fill the memory with one.
        self._rest = rest[: self._limit]
        return [line[: self._limit] for line in lines]

    def rest(self) -> bytes:
        """Return and discard the unfinished line."""
        rest, self._rest = self._rest, b""
        return rest
