"""Reads the work that a pause loses: scripts, and trainings that are one call, begin again after it."""

from typing import NamedTuple

from jobs.models import Job
from jobs.queries.code import dry_builds
from jobs.queries.search import running_executions


class LostWork(NamedTuple):
    """Runs that begin again.

    Attributes:
        runs: how many are running now.
        done: the epochs or steps that they have done.
        unit: `epoch` or `step`.
    """

    runs: int
    done: int
    unit: str


def work_lost_by_pause(job: Job) -> LostWork | None:
    """Return the work that pausing or stopping a job loses. None if the job can resume it."""
    if job.revision is None or not (job.facts.has_trials or job.facts.trains):
        return None
    is_script = job.revision.spec.model.info.trains_itself
    if not is_script and not is_trained_by_one_call(job):
        return None
    unit = "step" if is_script else "epoch"
    if job.facts.has_trials:
        running = running_executions.running_in_search(job)
        return LostWork(len(running), sum(execution.epochs for execution in running.values()), unit)
    return LostWork(1, int(job.progress.get("done") or 0), unit)


def is_trained_by_one_call(job: Job) -> bool:
    """Return whether own code trains a job's models by one call to a fit."""
    model = dry_builds.built_model(job)
    return model is not None and model.one_call
