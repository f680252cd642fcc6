"""Decides when a training writes checkpoints, writes them and deletes old ones."""

import os
import shutil
import time
from pathlib import Path
from typing import Any

from workers.engine.arrays import Array
from workers.engine.report import Report
from workers.engine.training import checkpoint
from workers.engine.training.array_groups import read_group, write_kept
from workers.engine.training.checkpoint import Snapshot
from workers.engine.training.shared_files import SharedFiles

INTERVAL_VARIABLE = "TRAINYARD_CHECKPOINT_SECONDS"
"""Environment variable with the minimum number of seconds between checkpoints at epoch ends."""
DEFAULT_INTERVAL = 1.0
MIN_INTERVAL_WITHIN_EPOCH = 30.0
"""Minimum number of seconds between checkpoints within an epoch."""
MAX_UNRECORDED = 8
"""No further checkpoints are written while this many are not recorded: the database is unavailable, and
checkpoints that are not recorded cannot be deleted."""


def configured_interval() -> float:
    """Return the minimum seconds between checkpoints at epoch ends."""
    return float(os.environ.get(INTERVAL_VARIABLE, DEFAULT_INTERVAL))


class Checkpointer:
    """Writes one training's checkpoints.

    Args:
        parent: this training's checkpoint folder.
        report: reports each checkpoint and returns those that are recorded.
        fence: the attempt's fencing token.
        execution: the execution number; None outside a search.
        interval: minimum seconds between checkpoints at epoch ends; None uses the configured one.
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
        self._shared = SharedFiles()
        # Later attempts delete it, as they do incomplete checkpoints.
        self._kept = parent / f".tmp-{fence}-kept"

    def multiply_interval(self, factor: int) -> None:
        """Multiply the interval between checkpoints by `factor`."""
        self._interval *= factor

    def is_due(self, *, within_epoch: bool = False) -> bool:
        """Return whether a checkpoint should be written now."""
        interval = max(self._interval, MIN_INTERVAL_WITHIN_EPOCH) if within_epoch else self._interval
        if time.monotonic() - self._last < interval:
            return False
        self._update_recorded()
        return len(self._unrecorded) < MAX_UNRECORDED

    def write(self, snapshot: Snapshot, *, step: int, epoch: int) -> None:
        """Write and report a checkpoint, then delete old ones.

        Args:
            snapshot: its contents.
            step: training steps completed.
            epoch: epochs completed.

        Raises:
            DiskFull: see `checkpoint.write`.
        """
        written = checkpoint.write(self._parent, snapshot, fence=self._fence, step=step, shared=self._shared)
        self._unrecorded.append(written.folder.name)
        self._report.checkpoint(
            str(written.folder),
            step=step,
            epoch=epoch,
            manifest=written.manifest,
            size=written.bytes,
            execution=self._execution,
        )
        self._update_recorded()
        checkpoint.delete_old(self._parent, self._fence, self._recorded)
        self._last = time.monotonic()

    def keep(self, group: str, arrays: list[Any]) -> list[Array]:
        """Write arrays on several devices to a file until `discard`, and return views of it.

        The next checkpoints link the file. A killed attempt's is deleted by the attempt that follows.

        Raises:
            DiskFull: no space is left; the file from an earlier call is unchanged.
        """
        file = self._kept / f"{group}.npz"
        write_kept(file, arrays)
        return read_group(file, [str(array.dtype) for array in arrays], mapped=True)

    def discard(self) -> None:
        """Delete the files from `keep`. Views of them, and checkpoints that link them, are still there."""
        shutil.rmtree(self._kept, ignore_errors=True)

    def _update_recorded(self) -> None:
        """Read which of this training's checkpoints the database has recorded."""
        for folder in map(Path, self._report.recorded()):
            # Folders of other executions have equal names, and paths may be relative: all given parts count.
            ours = (self._parent / folder.name).parts[-len(folder.parts) :] == folder.parts
            if ours and folder.name in self._unrecorded:
                self._recorded = folder.name
                self._unrecorded = self._unrecorded[self._unrecorded.index(folder.name) + 1 :]
