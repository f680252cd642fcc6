"""Which checkpoint a task will go on from, known before Keras is imported."""

from jobs.contracts.task import Task, TrainTask, TrialTask
from workers.engine.training.checkpoint import newest_whole


def newest_step(task: Task) -> int | None:
    """Return the step of the newest checkpoint that verifies, of the first training still open."""
    if isinstance(task, TrainTask):
        candidates = task.resume
    elif isinstance(task, TrialTask) and task.trials[0].executions:
        candidates = task.trials[0].executions[0].checkpoints
    else:
        return None
    found = newest_whole(candidates)
    return None if found is None else found.step
