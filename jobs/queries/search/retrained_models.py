"""Reads the models that the steps after a search made from its trials."""

from typing import NamedTuple

from jobs.models import Job
from jobs.queries.search import outcomes
from jobs.states import FINAL, JobState


class BestRetrained(NamedTuple):
    """The retrained model that a root job uses and registers as its best single one.

    Attributes:
        job: the training.
        differs: whether another trial than the one whose values it has is the search's best.
    """

    job: Job
    differs: bool


def best_retrained(root: Job) -> BestRetrained | None:
    """Return a root's best single model; None before all its retrained trials have ended."""
    if root.facts.trains:
        return None
    trained = [child for child in root.children.all() if child.facts.trains]
    is_completed = any(child.state == JobState.COMPLETED for child in trained)
    if not is_completed or any(child.state not in FINAL for child in trained):
        return None
    job = outcomes.best_single(root)
    trial = job.payload.repeated_trial()
    best = outcomes.best_trials(root, limit=1).first() if root.facts.has_trials else None
    return BestRetrained(job, differs=best is not None and trial is not None and best.number != trial)


def retrained_step(search: Job, number: int) -> Job | None:
    """Return the completed step that retrains a trial. None if there is none."""
    ended_badly = (JobState.FAILED, JobState.STOPPED)
    for child in search.children.trainings().order_by("pk"):
        if child.payload.repeated_trial() == number and child.state not in ended_badly:
            return child
    return None


def model_digest(training: Job) -> str:
    """Return a training's model digest; empty before it has made one."""
    models = training.artifacts.filter(role="model").order_by("-attempt", "-pk")
    return models.values_list("artifact_id", flat=True).first() or ""
