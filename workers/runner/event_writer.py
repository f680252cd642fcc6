"""Writes events to the supervisor's pipe from a thread, so that training does not wait for the pipe."""

import json
import os
import queue
import threading
import time

from pydantic_core import PydanticSerializationError

from jobs.messages.events import Ready, RunnerEvent
from workers.runner.metric_batching import MetricCall, encode_calls

EXIT_EVENTS_CLOSED = 3
"""Exit status when the supervisor no longer reads the event pipe."""
BATCH_SECONDS = 0.1
"""Metrics within this many seconds are sent in one batch; none is delayed for longer."""
MOST_WAITING = 50_000
"""Items in the queue: events, and calls of `Report.metric`. They wait in memory for a slow supervisor."""
WAIT_SECONDS = 0.01

Item = RunnerEvent | Ready | MetricCall | threading.Event


class EventWriter:
    """A queue, and a thread that writes it to the event pipe as one JSON object a line.

    A run that sends more than the supervisor accepts waits once `MOST_WAITING` items are queued.

    A single metric is written at once, like every other event. Metrics that follow shortly after are batched;
    the next event or `flush` writes them first, so the events stay in order.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        # Not bounded itself: its `put` is reentrant, and a bounded queue would need a lock for each event.
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()
        self._urgent = threading.Event()
        threading.Thread(target=self._write_all, name="events", daemon=True).start()

    def send(self, event: RunnerEvent | Ready) -> None:
        """Queue an event. This waits only while very many are queued."""
        self._wait_for_room()
        self._queue.put(event)
        self._urgent.set()

    def send_metrics(self, call: MetricCall) -> None:
        """Queue the points from one `Report.metric` call. This waits only while very many are queued."""
        self._wait_for_room()
        # `_urgent` is not set, so that metrics can be batched.
        self._queue.put(call)

    def _wait_for_room(self) -> None:
        while self._queue.qsize() > MOST_WAITING:
            time.sleep(WAIT_SECONDS)

    def flush(self) -> None:
        """Wait until everything queued so far is in the pipe."""
        written = threading.Event()
        self._queue.put(written)
        self._urgent.set()
        written.wait()

    def _write_all(self) -> None:
        try:
            self._write_until_closed()
        finally:
            # Without this thread, the task would wait for `flush` without end.
            os._exit(EXIT_EVENTS_CLOSED)

    def _write_until_closed(self) -> None:
        next_metrics = 0.0
        while True:
            item = self._queue.get()
            delay = next_metrics - time.monotonic()
            if delay > 0 and isinstance(item, MetricCall):
                self._urgent.wait(delay)
            # Cleared before the queue is read: an event that is queued in between is among `items`.
            self._urgent.clear()
            items = [item, *(self._queue.get_nowait() for _ in range(self._queue.qsize()))]
            self._write_together(items)
            if any(isinstance(call, MetricCall) for call in items):
                next_metrics = time.monotonic() + BATCH_SECONDS

    def _write_together(self, items: list[Item]) -> None:
        lines: list[bytes] = []
        calls: list[MetricCall] = []
        for item in items:
            if isinstance(item, MetricCall):
                calls.append(item)
                continue
            lines += encode_calls(calls)
            calls = []
            if isinstance(item, threading.Event):
                self._write(b"".join(lines))
                lines = []
                item.set()
            else:
                lines.append(_encoded(item) + b"\n")
        self._write(b"".join([*lines, *encode_calls(calls)]))

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        try:
            # A pipe takes at most its free capacity at a time.
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except OSError:
            # The supervisor is gone, so no result could be delivered.
            os._exit(EXIT_EVENTS_CLOSED)


def _encoded(event: RunnerEvent | Ready) -> bytes:
    """Return an event as JSON."""
    try:
        return event.model_dump_json().encode()
    except PydanticSerializationError:
        # A text from a file may have half of a surrogate pair, which UTF-8 cannot encode.
        return json.dumps(event.model_dump(), ensure_ascii=False).encode("utf-8", "replace")
