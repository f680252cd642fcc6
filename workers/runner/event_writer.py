"""Sends events to the supervisor without ever making the training wait for it."""

import os
import queue
import threading
import time
from collections.abc import Iterator

from jobs.contracts.events import Ready, RunnerEvent
from workers.runner.metric_batching import Call, lines_of

CLOSED = 3
"""Exit status when nobody reads our events any more."""
GATHER = 0.1
"""Metrics that follow each other faster than this, in seconds, travel together; none waits for longer."""

Item = RunnerEvent | Ready | Call | threading.Event


class Outlet:
    """An unbounded queue and one thread that writes it to the event pipe, a JSON object a line.

    A metric that comes alone is written at once, like every other event. Only metrics that come soon after
    the last ones are held back, and then the next event or `flush` takes them along: the order stays.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._urgent = threading.Event()
        threading.Thread(target=self._write_all, name="events", daemon=True).start()

    def send(self, event: RunnerEvent | Ready) -> None:
        """Queue an event; returns at once."""
        self._waiting.put(event)
        self._urgent.set()

    def gather(self, call: Call) -> None:
        """Queue the points of one call of `Report.metric`; returns at once."""
        self._waiting.put(call)  # wakes the writer only where it has nothing to do

    def flush(self) -> None:
        """Wait until everything queued so far is in the pipe."""
        written = threading.Event()
        self._waiting.put(written)
        self._urgent.set()
        written.wait()

    def _write_all(self) -> None:
        next_metrics = 0.0
        while True:
            item = self._waiting.get()
            early = next_metrics - time.monotonic()
            if early > 0 and isinstance(item, Call):
                self._urgent.wait(early)
            self._urgent.clear()  # whoever sets it after this finds its event still in the queue, or written
            items = [item, *self._queued()]
            self._write_together(items)
            if any(isinstance(each, Call) for each in items):
                next_metrics = time.monotonic() + GATHER

    def _queued(self) -> Iterator[Item]:
        """Return what is in the queue now; what comes meanwhile is for the next time."""
        for _ in range(self._waiting.qsize()):
            yield self._waiting.get_nowait()

    def _write_together(self, items: list[Item]) -> None:
        lines: list[bytes] = []
        calls: list[Call] = []
        for item in items:
            if isinstance(item, Call):
                calls.append(item)
                continue
            lines += lines_of(calls)
            calls = []
            if isinstance(item, threading.Event):
                self._write(b"".join(lines))
                lines = []
                item.set()
            else:
                lines.append(item.model_dump_json().encode() + b"\n")
        self._write(b"".join([*lines, *lines_of(calls)]))

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            os._exit(CLOSED)  # the supervisor is gone: what we compute can reach nobody
