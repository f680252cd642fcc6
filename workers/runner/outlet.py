"""Sends events to the supervisor without ever making the training wait for it."""

import os
import queue
import threading

from jobs.spec.events import Ready, RunnerEvent

CLOSED = 3
"""Exit status when nobody reads our events any more."""


class Outlet:
    """An unbounded queue and one thread that writes it to the event pipe, a JSON object a line."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting: queue.SimpleQueue[RunnerEvent | Ready | threading.Event] = queue.SimpleQueue()
        threading.Thread(target=self._write_all, name="events", daemon=True).start()

    def send(self, event: RunnerEvent | Ready) -> None:
        """Queue an event; returns at once."""
        self._waiting.put(event)

    def flush(self) -> None:
        """Wait until everything queued so far is in the pipe."""
        written = threading.Event()
        self._waiting.put(written)
        written.wait()

    def _write_all(self) -> None:
        while True:
            item = self._waiting.get()
            if isinstance(item, threading.Event):
                item.set()
            else:
                self._write(item.model_dump_json().encode() + b"\n")

    def _write(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._fd, line) :]
        except OSError:
            os._exit(CLOSED)  # the supervisor is gone: what we compute can reach nobody
