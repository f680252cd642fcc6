"""Hears the supervisor: control lines on standard input, SIGTERM as "stop"."""

import os
import queue
import signal
import sys
import threading
from collections import deque
from types import FrameType
from typing import BinaryIO

from pydantic import ValidationError

from jobs.contracts.control import CONTROL, Checkpoint, Compare, Recorded, Rehearse, Start, Yield
from jobs.contracts.pruning import Curve
from workers.engine.report import Request, Why

RECENT = 256
"""Recorded checkpoints that are remembered: of all trainings of a task the newest one matters."""
CLOSED_WHILE_BUSY = 4
"""Exit status when standard input ends while a task runs."""


class Inbox:
    """Keeps what was asked until the main thread looks."""

    def __init__(self) -> None:
        self._starts: queue.SimpleQueue[Start | Rehearse | None] = queue.SimpleQueue()
        self._told: queue.SimpleQueue[Curve] = queue.SimpleQueue()
        self._recorded: deque[str] = deque(maxlen=RECENT)
        self._why: Why | None = None
        self._wants_checkpoint = False
        self._busy = False
        self.ended = False

    def listen(self, stream: BinaryIO = sys.stdin.buffer) -> None:
        """Start to read control lines, and take SIGTERM as a request to stop."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        threading.Thread(target=self._read, args=(stream,), name="control", daemon=True).start()

    def next_start(self) -> Start | Rehearse | None:
        """Wait for the next task, or for the wish to rehearse; None when there will be no more."""
        if self.ended:
            return None
        start = self._starts.get()
        self._busy = start is not None
        return start

    def be_idle(self) -> None:
        """Note that the task's end is about to be told: from here on, end of file is a normal end."""
        self._busy = False

    def begin(self) -> None:
        """Forget what was asked of an earlier task, and told to it."""
        self._wants_checkpoint = False
        self.curves()
        self._recorded.clear()
        if not self.ended:
            self._why = None

    def request(self) -> Request | None:
        """Return what is asked of the running task; a checkpoint is asked for once."""
        if self._why is not None:
            return self._why
        if self._wants_checkpoint:
            self._wants_checkpoint = False
            return "checkpoint"
        return None

    def curves(self) -> list[Curve]:
        """Return what the running task was told since the last call: how far other trainings came."""
        return _taken(self._told)

    def recorded(self) -> list[str]:
        """Return which checkpoints of the running task are recorded, the newest last.

        Nothing is taken away: several trainings may ask, each for its own.
        """
        return list(self._recorded.copy())

    def _read(self, stream: BinaryIO) -> None:
        for line in stream:
            try:
                self._take(line)
            except ValidationError as error:
                sys.stderr.write(f"control line not understood: {error}\n")
        self.ended = True
        if self._busy:
            os._exit(CLOSED_WHILE_BUSY)  # the supervisor let go of us: no result would be heard
        self._starts.put(None)

    def _take(self, line: bytes) -> None:
        match CONTROL.validate_json(line):
            case (Start() | Rehearse()) as start:
                self._starts.put(start)
            case Yield(why=why):
                self._why = why
            case Checkpoint():
                self._wants_checkpoint = True
            case Compare(curves=curves):
                for curve in curves:
                    self._told.put(curve)
            case Recorded(folders=folders):
                self._recorded.extend(folders)

    def _on_sigterm(self, _signal: int, _frame: FrameType | None) -> None:
        self._why, self.ended = "stop", True
        self._starts.put(None)


def _taken[T](told: "queue.SimpleQueue[T]") -> list[T]:
    return [told.get_nowait() for _ in range(told.qsize())]  # nobody else takes any
