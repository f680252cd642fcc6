"""Finds a job's running trainings that can resume from a checkpoint."""

from typing import NamedTuple

from django.db.models import Q

from jobs.models import Attempt, Checkpoint, Job
from jobs.states import TrialState


class ResumableTraining(NamedTuple):
    """A running training: its attempt's id, its trial's number, and its checkpoint's epoch."""

    attempt: int
    trial: int | None
    epoch: int


def resumable_trainings(job: Job) -> list[ResumableTraining]:
    """Return running trainings with a checkpoint, for a job and its steps, newest attempt first."""
    attempts = Attempt.objects.open().filter(Q(job=job) | Q(job__parent=job)).order_by("-number")
    return [training for attempt in attempts if (training := _training_in_attempt(attempt)) is not None]


def _training_in_attempt(attempt: Attempt) -> ResumableTraining | None:
    """Return the training that runs in an attempt, if its newest checkpoint belongs to it."""
    written = Checkpoint.objects.kept().filter(job=attempt.job_id, attempt=attempt.number)
    newest = written.select_related("trial").order_by("-pk").first()
    if newest is None:
        return None
    if (trial := newest.trial) is None:
        return ResumableTraining(attempt.pk, None, newest.epoch)
    running = trial.executions.running().filter(number=newest.execution or 0).exists()
    if trial.state != TrialState.RUNNING or not running:
        return None
    return ResumableTraining(attempt.pk, trial.number, newest.epoch)
