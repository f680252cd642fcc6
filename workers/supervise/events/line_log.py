"""Writes the lines that a program prints beside a run to the attempt's log."""

import contextlib
import time

from jobs.messages.events import Log
from workers.supervise.events.event_recorder import EventRecorder
from workers.supervise.events.log_file import level_of


class LineLog:
    """Writes lines to an attempt's log, up to a number of them. Call it in the event loop.

    Args:
        source: names the program in the log.
        recorder: the attempt's.
        limit: how many lines are written.
    """

    def __init__(self, source: str, recorder: EventRecorder, limit: int) -> None:
        self._source, self._recorder, self._limit = source, recorder, limit
        self._count = 0

    def add(self, line: str) -> None:
        """Write a line."""
        self._count += 1
        if self._count > self._limit:
            return
        text = line
        if self._count == self._limit:
            text = f"more than {self._limit} lines; further ones are left out"
        # The end of the run follows when a line of its own cannot be written.
        with contextlib.suppress(OSError):
            self._recorder.add(Log(time=time.time(), level=level_of(line), source=self._source, line=text))
