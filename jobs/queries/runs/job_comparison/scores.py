"""Reads the scores of several jobs: of a search that of its best trial, of a training its own."""

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from django.db.models import F, Window
from django.db.models.functions import RowNumber

from jobs.kinds.roots import BestTrial, RootResult
from jobs.models import Job, Trial
from jobs.queries.runs.job_comparison.subjects import Subject
from jobs.queries.search import outcomes
from jobs.states import TrialState


class Score(NamedTuple):
    """The objective of a subject's models, and the best score; None if there is none yet."""

    metric: str
    direction: Literal["min", "max"]
    value: float | None
    trial: int | None = None


def scores_of(subjects: Sequence[Subject]) -> list[Score | None]:
    """Return each subject's score; None if it has no objective."""
    searches = {
        subject.job.pk: subject.job
        for subject in subjects
        if subject.job is not None and subject.job.facts.has_trials
    }
    unfinished = [job for job in searches.values() if _stored_best(job) is None]
    best = _best_trials(unfinished)
    return [_score_of(subject, best) for subject in subjects]


def _stored_best(search: Job) -> BestTrial | None:
    """Return the best trial that a search has stored at its end."""
    results = search.results
    return results.best_trial if isinstance(results, RootResult) else None


def _best_trials(searches: Sequence[Job]) -> dict[int, tuple[int, float]]:
    """Return number and score of the best trial of searches that have stored no results yet."""
    down = [job.pk for job in searches if outcomes.objective_of(job).direction == "max"]
    up = [job.pk for job in searches if job.pk not in down]
    return {**_first_trials(down, "-score"), **_first_trials(up, "score")}


def _first_trials(searches: Collection[int], order: str) -> dict[int, tuple[int, float]]:
    if not searches:
        return {}
    by_score = F("score").desc() if order.startswith("-") else F("score").asc()
    place = Window(RowNumber(), partition_by=F("job"), order_by=[by_score, F("number").asc()])
    rows = Trial.objects.filter(job__in=searches, state=TrialState.COMPLETED, score__isnull=False)
    best = rows.annotate(place=place).filter(place=1)
    found = best.values_list("job", "number", "score")
    return {job: (number, score) for job, number, score in found if score is not None}


def _score_of(subject: Subject, best: dict[int, tuple[int, float]]) -> Score | None:
    job = subject.job
    if job is None or job.revision is None:
        return None
    # A version has the score of its own training, not that of the search.
    if job.facts.has_trials:
        objective = outcomes.objective_of(job)
        stored = _stored_best(job)
        number, value = best.get(
            job.pk, (stored.number, stored.score) if stored is not None else (None, None)
        )
        return Score(objective.metric, objective.direction, value, number)
    if job.facts.trains:
        objective = outcomes.objective_of(job)
        return Score(objective.metric, objective.direction, getattr(job.results, "score", None))
    return None
