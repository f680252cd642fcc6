"""Reads the epochs and the seconds per epoch in earlier trainings, to estimate the next one's."""

from statistics import median
from typing import Any

from django.db.models import QuerySet, Sum

from jobs.models import Execution, Experiment, Project, Trial
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.plan.estimate import History, PastTraining
from jobs.spec.sections.code_model import CodeModel
from jobs.spec.sections.script_model import ScriptModel
from jobs.states import TrialState

NEWEST = 200
"""How many of the newest trials and executions are read."""

ENOUGH = 3
"""An experiment with this many trials is estimated from these alone."""


def past_durations(project: Project, spec: ExperimentSpec, experiment: Experiment | None) -> History | None:
    """Return how long completed trials with equal data and model, or an equal script, took.

    They come from the experiment if it has enough, else from the whole project; None without any.
    """
    alike = Trial.objects.filter(
        job__project=project,
        state=TrialState.COMPLETED,
        restarts=0,  # the duration of a restarted trial includes the time that it waited
        **{
            f"job__revision__spec_json__{path}": value
            for path, value in _similar_values(project, spec).items()
        },
    )
    where = "this project" if spec.data is None else "this project on this data set"
    # The slice lets the database stop counting at `ENOUGH`.
    if experiment is not None and alike.filter(job__experiment=experiment)[:ENOUGH].count() == ENOUGH:
        alike, where = alike.filter(job__experiment=experiment), "this experiment"
    seconds, trainings = _seconds_per_epoch(alike), _trainings_of(alike)
    return History(trainings, median(seconds), where) if seconds and trainings else None


def _similar_values(project: Project, spec: ExperimentSpec) -> dict[str, Any]:
    """Return the values, by path, that an earlier training's spec must share."""
    named_by = spec.model.named_by
    values: dict[str, Any] = {f"model__{named_by}": getattr(spec.model, named_by)}
    if isinstance(spec.model, CodeModel | ScriptModel):
        # Entries of different code have the same names. A new version of the same code is alike.
        names = project.code.filter(digest=spec.model.digest).values("name")
        values["model__digest__in"] = list(
            project.code.filter(name__in=names).values_list("digest", flat=True)
        )
    return values if spec.data is None else {**values, "data__dataset": spec.data.dataset}


def _seconds_per_epoch(trials: QuerySet[Trial]) -> list[float]:
    """Return each trial's seconds per epoch, its overhead included."""
    rows = trials.annotate(trained=Sum("executions__epochs")).order_by("-pk")[:NEWEST]
    return [
        (trial.finished - trial.started).total_seconds() / trained
        for trial in rows
        if trial.started and trial.finished and (trained := trial.trained)
    ]


def _trainings_of(trials: QuerySet[Trial]) -> list[PastTraining]:
    rows = (
        Execution.objects.filter(trial__in=trials, state=TrialState.COMPLETED, epochs__gt=0)
        .order_by("-pk")
        .values_list("epochs", "best_epoch", "trial__job__revision__spec_json__fit__early_stopping")[:NEWEST]
    )
    return [
        PastTraining(epochs, best_epoch or epochs, stopping.get("patience") if stopping else None)
        for epochs, best_epoch, stopping in rows
    ]
