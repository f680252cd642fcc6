"""Removes checkpoints that have the name of one that an attempt will write.

The number of an attempt is in the names of its checkpoints, and is given once in each database. A restored
database gives it again, and a machine that the restore could not reach still has the checkpoints of before.
A writer takes a checkpoint that exists for its own.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs.messages.task import CheckpointFolder, Task
from jobs.messages.training import TrainTask, TrialTask
from jobs.runner_files import remove_folder


def remove_earlier(task: Task, root: Path) -> None:
    """Remove the checkpoints with an attempt's number, before it writes any.

    Args:
        task: the attempt's. The checkpoints from which it may resume are kept.
        root: the folder with all checkpoints.
    """
    for folder, candidates in _trainings(task):
        recorded = {Path(candidate.folder).name for candidate in candidates}
        for path in folder.glob(f"[0-9]*-{task.fence}"):
            if path.name not in recorded:
                # Runners write above it, too: they may have replaced a folder on the way by a link.
                remove_folder(root, os.path.relpath(path, root))


def _trainings(task: Task) -> Iterator[tuple[Path, Sequence[CheckpointFolder]]]:
    """Yield the folder of each training's checkpoints, and those from which it may resume."""
    if not task.checkpoints:
        return
    place = Path(task.checkpoints)
    if isinstance(task, TrainTask):
        yield place, task.resume
    elif isinstance(task, TrialTask):
        for trial in task.trials:
            for plan in trial.executions:
                yield place / f"trial-{trial.number}" / f"execution-{plan.execution}", plan.checkpoints
