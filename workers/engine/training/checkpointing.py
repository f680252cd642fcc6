"""Decides when a training writes checkpoints, and writes them."""

import os
import time
from pathlib import Path

from workers.engine.report import Report
from workers.engine.training import checkpoint
from workers.engine.training.checkpoint import Snapshot

INTERVAL = "TRAINYARD_CHECKPOINT_SECONDS"
EVERY_EPOCH_BUT = 1.0
WITHIN_AN_EPOCH = 30.0
UNRECORDED = 8
"""Checkpoints that stand without being recorded before no more are written: the database is away."""


def configured_interval() -> float:
    """Return the seconds between checkpoints that the operator set, else 1."""
    return float(os.environ.get(INTERVAL, EVERY_EPOCH_BUT))


class Keeper:
    """The checkpoints of one training.

    Args:
        parent: folder of this training's checkpoints.
        fence: number of the attempt.
        interval: seconds that pass at least between two checkpoints at epoch ends; else as configured.
    """

    def __init__(
        self,
        parent: Path,
        report: Report,
        *,
        fence: int,
        execution: int | None = None,
        interval: float | None = None,
    ) -> None:
        self._parent = parent
        self._report = report
        self._fence = fence
        self._execution = execution
        self._interval = configured_interval() if interval is None else interval
        self._last = time.monotonic()
        self._recorded: str | None = None
        self._unrecorded: list[str] = []

    def keep_less_often(self, times: int) -> None:
        """Let so many times as long pass between checkpoints."""
        self._interval *= times

    def due(self, *, within_epoch: bool = False) -> bool:
        """Say whether it is time for another one."""
        interval = max(self._interval, WITHIN_AN_EPOCH) if within_epoch else self._interval
        if time.monotonic() - self._last < interval:
            return False
        self._hear()
        return len(self._unrecorded) < UNRECORDED

    def commit(self, snapshot: Snapshot, *, step: int, epoch: int) -> None:
        """Write a checkpoint, say so, delete what is too old."""
        done = checkpoint.write(self._parent, snapshot, fence=self._fence, step=step)
        self._unrecorded.append(done.folder.name)
        self._report.checkpoint(
            str(done.folder),
            step=step,
            epoch=epoch,
            manifest=done.manifest,
            size=done.bytes,
            execution=self._execution,
        )
        self._hear()
        checkpoint.prune(self._parent, self._fence, self._recorded)
        self._last = time.monotonic()

    def _hear(self) -> None:
        """Take note of which of ours are recorded by now."""
        for folder in map(Path, self._report.recorded()):
            ours = (self._parent / folder.name).parts[-len(folder.parts) :] == folder.parts
            if ours and folder.name in self._unrecorded:
                self._recorded = folder.name
                self._unrecorded = self._unrecorded[self._unrecorded.index(folder.name) + 1 :]
