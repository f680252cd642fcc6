"""Divides a program's output into lines with bounded length."""

from collections.abc import Iterator

from workers.engine.scripts.metric_lines import MAX_LINE_BYTES


class Lines:
    """One stream's lines. A longer line is divided."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that a chunk ends, without their line ends."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        yield from lines
        while len(self._rest) > MAX_LINE_BYTES:
            part, self._rest = self._rest[:MAX_LINE_BYTES], self._rest[MAX_LINE_BYTES:]
            yield part

    def end(self) -> Iterator[bytes]:
        """Yield the last line if nothing has ended it."""
        if self._rest:
            yield self._rest
        self._rest = b""
