"""Splits a process's output into lines, and keeps the last one."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

from workers.system.line_splitter import LineSplitter

MAX_LAST_CHARACTERS = 500


class OutputLines:
    """The lines that a process prints, without empty ones.

    Args:
        receive: is called with each line, without white space at its ends.
        limit: bytes in a line after which the rest is left out.
        loop: the event loop in which `receive` is called; by default, it is the thread that reads.
    """

    def __init__(
        self, receive: Callable[[str], object], *, limit: int, loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        self._receive, self._loop = receive, loop
        self._splitter = LineSplitter(limit)
        self._last = ""

    @property
    def last(self) -> str:
        """The last line, shortened; empty if there is none."""
        return self._last[:MAX_LAST_CHARACTERS]

    def feed(self, chunk: bytes) -> None:
        """Take a part of the output, in the thread that reads."""
        self._call(lambda: self._pass_on(self._splitter.feed(chunk)))

    def end(self) -> None:
        """Take the last line if it has no newline. Call it after the last part, in a thread that may read."""
        self._call(lambda: self._pass_on([self._splitter.rest()]))

    def _call(self, step: Callable[[], None]) -> None:
        if self._loop is None:
            step()
            return
        # The loop of a program that ends may be closed.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(step)

    def _pass_on(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line.decode(errors="replace").replace("\0", "\ufffd").strip()
            if text:
                self._last = text
                self._receive(text)
