"""Finds the checkpoint that a task resumes from, before Keras is imported."""

from jobs.contracts.task_parts import Task
from workers.engine.training.checkpoint import newest_intact


def newest_step(task: Task) -> int | None:
    """Return the step of the newest valid checkpoint of the first unfinished training."""
    found = newest_intact(task.resumes_from())
    return None if found is None else found.step
