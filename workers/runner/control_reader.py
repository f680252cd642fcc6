"""Reads the supervisor's control lines from standard input, and treats SIGTERM as a stop."""

import os
import queue
import signal
import sys
import threading
from collections import deque
from types import FrameType
from typing import BinaryIO

from pydantic import ValidationError

from jobs.messages.control import (
    CONTROL,
    Checkpoint,
    Compare,
    Recorded,
    Rehearse,
    Start,
    Yield,
)
from jobs.spec.sections.pruning import Curve
from workers.engine.report import Request, StopReason

# Only the newest one of each training of the task matters.
MAX_RECORDED = 256
EXIT_CONTROL_CLOSED = 4
"""Exit status when standard input ends while a task runs."""


class ControlReader:
    """Holds requests until the main thread reads them."""

    def __init__(self) -> None:
        # None ends the queue. `SimpleQueue.put` is reentrant, so the handler of SIGTERM may call it.
        self._starts: queue.SimpleQueue[Start | Rehearse | None] = queue.SimpleQueue()
        self._curves: queue.SimpleQueue[Curve] = queue.SimpleQueue()
        self._recorded: deque[str] = deque(maxlen=MAX_RECORDED)
        self._yield_reason: StopReason | None = None
        self._wants_checkpoint = False
        self._busy = False
        self.ended = False

    def start(self, stream: BinaryIO = sys.stdin.buffer) -> None:
        """Start the reader thread, and install the SIGTERM handler."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        threading.Thread(target=self._read, args=(stream,), name="control", daemon=True).start()

    def next_task(self) -> Start | Rehearse | None:
        """Wait for the next task or warm-up request; None when there will be no more."""
        if self.ended:
            return None
        start = self._starts.get()
        self._busy = start is not None
        return start

    def mark_idle(self) -> None:
        """Note that the task has ended: from now on, end of file on standard input is a normal exit."""
        self._busy = False

    def reset(self) -> None:
        """Discard requests and data meant for an earlier task."""
        self._wants_checkpoint = False
        self.curves()
        self._recorded.clear()
        # After SIGTERM the request to stop holds for every further task.
        if not self.ended:
            self._yield_reason = None

    def request(self) -> Request | None:
        """Return the current request to the running task. A checkpoint request is returned once."""
        if self._yield_reason is not None:
            return self._yield_reason
        if self._wants_checkpoint:
            self._wants_checkpoint = False
            return "checkpoint"
        return None

    def curves(self) -> list[Curve]:
        """Return other trainings' learning curves that arrived since the last call."""
        # The queue has no other consumer, so `qsize` items are there.
        return [self._curves.get_nowait() for _ in range(self._curves.qsize())]

    def recorded(self) -> list[str]:
        """Return the running task's recorded checkpoints, newest last.

        The list is not consumed: several trainings in a task look for their own checkpoints.
        """
        # `copy` is atomic. Iteration would fail if the reader thread appended meanwhile.
        return list(self._recorded.copy())

    def _read(self, stream: BinaryIO) -> None:
        for line in stream:
            try:
                self._handle(line)
            except ValidationError as error:
                sys.stderr.write(f"invalid control line: {error}\n")
        self.ended = True
        # The supervisor is gone, so no result could be delivered.
        if self._busy:
            os._exit(EXIT_CONTROL_CLOSED)
        self._starts.put(None)

    def _handle(self, line: bytes) -> None:
        match CONTROL.validate_json(line):
            case (Start() | Rehearse()) as start:
                self._starts.put(start)
            case Yield(why=why):
                self._yield_reason = why
            case Checkpoint():
                self._wants_checkpoint = True
            case Compare(curves=curves):
                for curve in curves:
                    self._curves.put(curve)
            case Recorded(folders=folders):
                self._recorded.extend(folders)

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        # `None` wakes an idle runner, which waits in `next_task`.
        self._yield_reason, self.ended = "stop", True
        self._starts.put(None)
