"""Finds the checkpoint that a task resumes from, before Keras is imported."""

from jobs.contracts.task import Task, TrainTask, TrialTask
from workers.engine.training.checkpoint import newest_whole


def newest_step(task: Task) -> int | None:
    """Return the step of the newest valid checkpoint of the first unfinished training."""
    if isinstance(task, TrainTask):
        candidates = task.resume
    elif isinstance(task, TrialTask) and task.trials[0].executions:
        candidates = task.trials[0].executions[0].checkpoints
    else:
        return None
    found = newest_whole(candidates)
    return None if found is None else found.step
