"""Computes a search's or a root job's outcome: best trials, Pareto front, candidates, results."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Case, F, IntegerField, Q, QuerySet, When

from jobs.errors import Conflict
from jobs.kinds.base import Result, value_of
from jobs.models import Dataset, Execution, Job, Project, Revision, Trial
from jobs.queries.search.algorithm_state import first_revision, found_hyperparameters
from jobs.queries.search.pareto import pareto_fronts
from jobs.spec.experiment import ExperimentSpec
from jobs.spec.sections.search import Objective, SearchSpec
from jobs.spec.space.search_space import Space
from jobs.sql import one_of
from jobs.states import JobState, TrialState

WITHDRAWN = "withdrawn"
"""The source stored for a trial that its algorithm withdrew before the start. Such trials are not counted."""

SCORED_STATES = (TrialState.COMPLETED, TrialState.PAUSED, TrialState.PRUNED)
"""States in which an execution has a score: it ended, or was paused or pruned after an epoch."""

# In SQL: every short trial needs it, and building it from models takes several times as long as running it.
_SCORES = (
    "SELECT score FROM jobs_execution "  # noqa: S608
    f"WHERE trial_id = %s AND {one_of('state', len(SCORED_STATES))} AND score IS NOT NULL"
)

BEST_TRIAL_FIELDS = ("number", "values", "score", "std")
"""The best trial's fields in a search's results."""


def objective_of(root: Job) -> Objective:
    """Return a root job's objective; validation loss if it has no search."""
    return root.payload.objective(_spec_of(root))


def search_of(root: Job) -> SearchSpec:
    """Return the search in a root's spec. For an external search, its space is as reported so far.

    Raises:
        Conflict: the job is not a search.
    """
    search = root.payload.search_spec(_spec_of(root))
    if search is None:
        raise Conflict(f"job {root.pk} ({root.facts.noun}) is not a search")
    return search


def _spec_of(root: Job) -> ExperimentSpec | None:
    return root.revision.spec if root.revision is not None else None


def widest_space(root: Job) -> Space:
    """Return the space that a search started with, and what trials have added to it.

    It contains all trials, unlike a space narrowed later.
    """
    revision = first_revision(root)
    if revision is None:
        return search_of(root).space
    first = Revision.objects.get(pk=revision).spec.search
    space = first.space if first is not None else ()
    names = {row.name for row in space}
    found = (one.row for one in found_hyperparameters(root) if one.row is not None)
    return (*space, *(row for row in found if row.name not in names))


def score_of(trial: Trial) -> tuple[float | None, float | None]:
    """Return mean and standard deviation over a trial's scores. None without any."""
    with connection.cursor() as cursor:
        cursor.execute(_SCORES, [trial.pk, *map(str, SCORED_STATES)])
        scores = [score for (score,) in cursor.fetchall()]
    return (fmean(scores), pstdev(scores)) if scores else (None, None)


def trials_planned(root: Job) -> int:
    """Return how many trials a search will run if it does not end early."""
    return root.payload.trials_planned(_spec_of(root))


def top_rung(root: Job) -> int | None:
    """Return the epoch at which a search's highest rung ends. None without rungs."""
    search = search_of(root)
    if root.revision is None or not search.info.has_rungs:
        return None
    return search.rung_options().rung_epochs(root.revision.spec.fit.epochs)[-1]


def best_trials(root: Job, *, limit: int) -> QuerySet[Trial]:
    """Return the completed trials with the best scores and distinct values, best first.

    With several objectives, the first Pareto front's trials come first. If no trial is completed, all trials
    with a score except failed ones count: a search may end before a trial reaches its highest rung.

    Args:
        root: the search.
        limit: the most trials to return.
    """
    score = F("score")
    order = score.desc() if objective_of(root).direction == "max" else score.asc()
    # A failed trial may have a score from before its failure.
    scored = root.trials.filter(score__isnull=False).exclude(state=TrialState.FAILED)
    objectives = _several_objectives(root)
    if objectives is None and limit == 1:
        # Pages ask for it several times. A single trial needs no check for repeated values.
        completed_first = Case(
            When(state=TrialState.COMPLETED, then=0), default=1, output_field=IntegerField()
        )
        return scored.order_by(completed_first, order, "number")[:1]
    scored = scored.order_by(order, "number")
    rows: QuerySet[Trial] = scored.filter(state=TrialState.COMPLETED)
    if not rows.exists():
        rows = scored
    if objectives is not None:
        rows = _by_dominance(rows, objectives, limit)
    keys: list[int] = []
    digests: set[str] = set()
    # A few at a time: a search may have thousands of trials, and the first ones usually suffice.
    for pk, digest in rows.values_list("pk", "values_digest").iterator(chunk_size=100):
        if len(keys) == limit:
            break
        if digest not in digests:
            digests.add(digest)
            keys.append(pk)
    return rows.filter(pk__in=keys)


def trials_tied_with(root: Job, number: int) -> list[int]:
    """List the trials that reach the best trial's score with other values, by number.

    Args:
        root: a search with one objective; with several, trials are not compared by one score.
        number: its best trial.
    """
    if _several_objectives(root) is not None:
        return []
    best = root.trials.get(number=number)
    tied = root.trials.filter(state=best.state, score=best.score).exclude(values_digest=best.values_digest)
    # Of repeated values, the first trial.
    return sorted(dict(tied.order_by("-number").values_list("values_digest", "number")).values())


def _several_objectives(root: Job) -> tuple[Objective, ...] | None:
    spec = _spec_of(root)
    return spec.search.objectives if spec is not None and spec.search is not None else None


def _by_dominance(rows: QuerySet[Trial], objectives: Sequence[Objective], limit: int) -> QuerySet[Trial]:
    """Return trials by Pareto front: ten times `limit`, because values may repeat."""
    scores = scores_of(rows, objectives)
    keys = sorted(scores)
    costs = [tuple(o.cost(x) for o, x in zip(objectives, scores[pk], strict=True)) for pk in keys]
    ordered = [keys[i] for front in pareto_fronts(costs, enough=10 * limit) for i in front][: 10 * limit]
    # SQL cannot compute the fronts, so each trial's position in the order is part of the statement.
    position = Case(*(When(pk=pk, then=i) for i, pk in enumerate(ordered)), output_field=IntegerField())
    return rows.filter(pk__in=ordered).order_by(position) if ordered else rows.none()


class ParetoFront(NamedTuple):
    """A search's Pareto front for several objectives; empty for a single objective.

    Attributes:
        scores: trial id → one score per objective, for completed trials.
        objectives: the metrics, in the same order.
        members: the trials that no other trial dominates, by id.
    """

    scores: dict[int, tuple[float, ...]]
    objectives: tuple[str, ...]
    members: frozenset[int]


def pareto_front(root: Job) -> ParetoFront:
    """Return a search's Pareto front."""
    several = _several_objectives(root)
    if several is None:
        return ParetoFront({}, (), frozenset())
    scores = scores_of(root.trials.all(), several)
    keys = sorted(scores)
    costs = [tuple(o.cost(x) for o, x in zip(several, scores[pk], strict=True)) for pk in keys]
    first = next(iter(pareto_fronts(costs, enough=1)), [])
    return ParetoFront(scores, tuple(o.metric for o in several), frozenset(keys[i] for i in first))


def scores_of(rows: QuerySet[Trial], objectives: Sequence[Objective]) -> dict[int, tuple[float, ...]]:
    """Return each completed trial's score per objective: the mean over its complete executions."""
    executions = Execution.objects.filter(trial__in=rows, trial__state=TrialState.COMPLETED)
    measured: dict[int, list[list[float]]] = defaultdict(list)
    for trial, metrics in executions.values_list("trial_id", "metrics"):
        figures = [metrics.get(objective.metric) for objective in objectives]
        if all(isinstance(figure, int | float) for figure in figures):
            measured[trial].append(figures)
    return {
        trial: tuple(fmean(column) for column in zip(*rows_of_scores, strict=True))
        for trial, rows_of_scores in measured.items()
    }


def validation_score(job: Job, objective: Objective) -> float | None:
    """Return a training job's objective on validation data; None if it is missing."""
    metrics = job.results.metrics.get("validation", {})
    value = value_of(metrics.get(objective.metric.removeprefix("val_")))
    return float(value) if isinstance(value, int | float) else None


def best_single(root: Job) -> Job:
    """Return the training job with the best validation score; the root itself if it is a training.

    Test data is never used for the choice.
    """
    if root.facts.trains:
        return root
    trained = root.children.trainings().filter(state=JobState.COMPLETED).order_by("ordinal")
    return best_of(list(trained), objective_of(root))


def best_of(trained: Sequence[Job], objective: Objective) -> Job:
    """Return the training with the best validation score; of equal ones the first."""
    best = trained[0]
    for job in trained[1:]:
        score, leader = validation_score(job, objective), validation_score(best, objective)
        if score is not None and (leader is None or objective.better(score, leader)):
            best = job
    return best


def find_dataset(project: Project, slug: str) -> Dataset | None:
    """Find a data set by slug in a project: its own, or else the bundled one."""
    # A project's own data set hides a bundled one with the same slug.
    own_or_bundled = Dataset.objects.filter(Q(project=project) | Q(project=None), slug=slug)
    return own_or_bundled.order_by(F("project").asc(nulls_last=True)).first()


def results_of_root(root: Job) -> Result:
    """Return a root job's results, computed from its trials and children."""
    facts = root.facts
    if not facts.has_trials and not facts.has_steps:
        return root.results
    fields: dict[str, Any] = {}
    if facts.has_trials and (best := best_trials(root, limit=1).values(*BEST_TRIAL_FIELDS).first()):
        fields["best_trial"] = best
    if candidates := _candidate_jobs(root):
        metrics = {name: job.results.metrics for name, job in candidates.items()}
        fields |= {"candidates": metrics, "metrics": metrics.get("ensemble") or metrics["best"]}
    return root.results.with_fields(**fields)


def _candidate_jobs(root: Job) -> dict[str, Job]:
    """Return the jobs that made a root's candidate models. Only the best training is among them."""
    completed = [child for child in root.children.all() if child.state == JobState.COMPLETED]
    candidates = {job.facts.candidate: job for job in completed if job.facts.candidate}
    if root.facts.trains or any(job.facts.trains for job in completed):
        candidates["best"] = best_single(root)
    return candidates
