"""Reads the models that the steps after a search made from its trials."""

from typing import NamedTuple

from jobs.models import Job
from jobs.queries.search import outcomes
from jobs.states import FINAL, JobState


class BestRetrained(NamedTuple):
    """The retrained model that a root job uses and registers as its best single one.

    Attributes:
        job: the training.
        trial: the trial whose values it has; None without a search.
        metric: the metric that chose it among the retrained models.
        score: its value on validation rows, before it was retrained with them; None if unknown.
        of: how many retrained models there were to choose from.
        differs: whether another trial is the search's best.
        registers: whether the experiment registers it as a model version.
    """

    job: Job
    trial: int | None
    metric: str
    score: float | None
    of: int
    differs: bool
    registers: bool


def best_retrained(root: Job) -> BestRetrained | None:
    """Return a root's best single model; None before all its retrained trials have ended."""
    if root.facts.trains:
        return None
    trained = [child for child in root.children.all() if child.facts.trains]
    completed = [child for child in trained if child.state == JobState.COMPLETED]
    if not completed or any(child.state not in FINAL for child in trained):
        return None
    objective = outcomes.objective_of(root)
    job = outcomes.best_single(root)
    best_trial = outcomes.best_trials(root, limit=1).first() if root.facts.has_trials else None
    trial = job.payload.repeated_trial()
    return BestRetrained(
        job=job,
        trial=trial,
        metric=objective.metric,
        score=outcomes.validation_score(job, objective),
        of=len(completed),
        differs=best_trial is not None and trial is not None and best_trial.number != trial,
        registers=_registers_best(root),
    )


def _registers_best(root: Job) -> bool:
    register = root.revision.spec.after.register_ if root.revision is not None else None
    return register is not None and root.payload.registers and "best" in register.what


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
