"""What came out of a search or a family of jobs: best trials, candidates, results."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from django.db.models import Case, F, IntegerField, Q, QuerySet, When

from jobs.contracts.experiment import ExperimentSpec
from jobs.contracts.pareto import fronts
from jobs.contracts.search import Objective, SearchSpec
from jobs.contracts.search_space import Space
from jobs.errors import Conflict
from jobs.kinds.base import Result
from jobs.kinds.search.payload import SearchPayload
from jobs.models import Dataset, Execution, Job, Project, Revision, Trial
from jobs.states import JobState, TrialState

WITHDRAWN = "withdrawn"
"""The source of a trial that its algorithm took back before it began: it counts as none."""


MEASURED = (TrialState.COMPLETED, TrialState.PAUSED, TrialState.PRUNED)
"""States of an execution that has a score: it ended, or was left at an epoch whose figures are known."""

OF_BEST = ("number", "values", "score", "std")
"""What a search's results say of its best trial."""


def objective_of(root: Job) -> Objective:
    """Return the objective of a root job; validation loss where there is no search."""
    return root.payload.objective(_spec_of(root))


def search_of(root: Job) -> SearchSpec:
    """Return the search of a root job's spec; of an external search, with the space told so far.

    Raises:
        Conflict: the job has none.
    """
    search = root.payload.search_spec(_spec_of(root))
    if search is None:
        raise Conflict(f"job {root.pk} is a {root.public_kind}, not a search")
    return search


def _spec_of(root: Job) -> ExperimentSpec | None:
    return root.revision.spec if root.revision is not None else None


def widest_space(root: Job) -> Space:
    """Return the space that a search began with: every trial lies inside, even if it is narrower now."""
    payload = root.payload
    if not isinstance(payload, SearchPayload) or payload.first_revision is None:
        return search_of(root).space
    first = Revision.objects.get(pk=payload.first_revision).spec.search
    return first.space if first is not None else ()


def score_of(trial: Trial) -> tuple[float | None, float | None]:
    """Return mean and spread over a trial's executions of each one's best epoch so far."""
    rows = trial.executions.filter(state__in=MEASURED).values_list("score", flat=True)
    scores = [score for score in rows if score is not None]
    return (fmean(scores), pstdev(scores)) if scores else (None, None)


def trials_planned(root: Job) -> int:
    """Return how many trials the algorithm of a search will make, if nothing ends it before."""
    return root.payload.trials_planned(_spec_of(root))


def top_rung(root: Job) -> int | None:
    """Return the epoch at which the highest rung of a search ends; None where it has no rungs."""
    search = search_of(root)
    if root.revision is None or not search.info.has_rungs:
        return None
    return search.rung_options().rung_epochs(root.revision.spec.fit.epochs)[-1]


def best_trials(root: Job, *, limit: int) -> QuerySet[Trial]:
    """List the completed trials of distinct values with the best scores, best first.

    Under several objectives those come first that no other trial beats in all of them. Where none was
    completed, those count that reached the end of a rung or were pruned, wherever they stand: a search may
    end or be stopped before a trial has reached its highest rung.
    """
    score = F("score")
    order = score.desc() if objective_of(root).direction == "max" else score.asc()
    scored = root.trials.filter(score__isnull=False).order_by(order, "number")
    rows: QuerySet[Trial] = scored.filter(state=TrialState.COMPLETED)
    if not rows.exists():
        rows = scored.exclude(state=TrialState.FAILED)
    several = _several_objectives(root)
    if several is not None:
        rows = _by_dominance(rows, several, limit)
    elif limit == 1:
        return rows[:1]
    chosen: list[int] = []
    seen: set[str] = set()
    for pk, digest in rows.values_list("pk", "values_digest").iterator(chunk_size=100):
        if digest not in seen:
            seen.add(digest)
            chosen.append(pk)
        if len(chosen) == limit:
            break
    return rows.filter(pk__in=chosen)


def _several_objectives(root: Job) -> tuple[Objective, ...] | None:
    spec = _spec_of(root)
    return spec.search.objectives if spec is not None and spec.search is not None else None


def _by_dominance(rows: QuerySet[Trial], objectives: Sequence[Objective], limit: int) -> QuerySet[Trial]:
    """Order trials by their front; more than `limit` of them, since values repeat."""
    scores = scores_of(rows, objectives)
    keys = sorted(scores)
    costs = [tuple(o.cost(x) for o, x in zip(objectives, scores[pk], strict=True)) for pk in keys]
    ordered = [keys[i] for front in fronts(costs, enough=10 * limit) for i in front][: 10 * limit]
    place = Case(*(When(pk=pk, then=i) for i, pk in enumerate(ordered)), output_field=IntegerField())
    return rows.filter(pk__in=ordered).order_by(place) if ordered else rows.none()


class Standing(NamedTuple):
    """How the completed trials of a search with several objectives stand; empty where there is one.

    Attributes:
        scores: by the trial's key, one value an objective.
        objectives: the metrics, in the same order.
        front: the keys of the trials that no other beats in all of them.
    """

    scores: dict[int, tuple[float, ...]]
    objectives: tuple[str, ...]
    front: frozenset[int]


def standing(root: Job) -> Standing:
    """Return how the trials of a search stand under several objectives."""
    several = _several_objectives(root)
    if several is None:
        return Standing({}, (), frozenset())
    scores = scores_of(root.trials.all(), several)
    keys = sorted(scores)
    costs = [tuple(o.cost(x) for o, x in zip(several, scores[pk], strict=True)) for pk in keys]
    first = next(iter(fronts(costs, enough=1)), [])
    return Standing(scores, tuple(o.metric for o in several), frozenset(keys[i] for i in first))


def scores_of(rows: QuerySet[Trial], objectives: Sequence[Objective]) -> dict[int, tuple[float, ...]]:
    """Return, by trial, one score an objective: the mean over its executions, of those that measured it."""
    done = Execution.objects.filter(trial__in=rows, trial__state=TrialState.COMPLETED)
    measured: dict[int, list[list[float]]] = defaultdict(list)
    for trial, metrics in done.values_list("trial_id", "metrics"):
        figures = [metrics.get(objective.metric) for objective in objectives]
        if all(isinstance(figure, int | float) for figure in figures):
            measured[trial].append(figures)
    return {
        trial: tuple(fmean(column) for column in zip(*found, strict=True))
        for trial, found in measured.items()
    }


def validation_score(job: Job, objective: Objective) -> float | None:
    """Return a trained candidate's score on validation data, by the objective's metric."""
    metrics = job.results.metrics.get("validation", {})
    value = metrics.get(objective.metric.removeprefix("val_"))
    if isinstance(value, dict):
        value = value.get("value")
    return float(value) if isinstance(value, int | float) else None


def best_single(root: Job) -> Job:
    """Return the training job with the best validation score; the root itself without a search.

    Test data never chooses: candidates are compared on validation data only.
    """
    if root.facts.trains:
        return root
    objective = objective_of(root)
    trained = list(root.children.trainings().filter(state=JobState.COMPLETED).order_by("ordinal"))
    best = trained[0]
    for job in trained[1:]:
        score, leader = validation_score(job, objective), validation_score(best, objective)
        if score is not None and (leader is None or objective.better(score, leader)):
            best = job
    return best


def dataset_in(project: Project, slug: str) -> Dataset | None:
    """Return the data set that a slug means inside a project: its own, or else the bundled one."""
    own_or_bundled = Dataset.objects.filter(Q(project=project) | Q(project=None), slug=slug)
    return own_or_bundled.order_by(F("project").asc(nulls_last=True)).first()


def results(root: Job) -> Result:
    """Return the results of a root job from its rows."""
    facts = root.facts
    if not facts.has_trials and not facts.first_step:
        return root.results
    found: dict[str, Any] = {}
    if facts.has_trials and (best := best_trials(root, limit=1).values(*OF_BEST).first()):
        found["best_trial"] = best
    if candidates := _candidates(root):
        metrics = {name: job.results.metrics for name, job in candidates.items()}
        found |= {"candidates": metrics, "metrics": metrics.get("ensemble") or metrics["best"]}
    return root.results.with_fields(**found)


def _candidates(root: Job) -> dict[str, Job]:
    """Return the jobs whose models came out of a root, by `Facts.candidate`; of its trainings the best."""
    done = [child for child in root.children.all() if child.state == JobState.COMPLETED]
    found = {job.facts.candidate: job for job in done if job.facts.candidate}
    if root.facts.trains or any(job.facts.trains for job in done):
        found["best"] = best_single(root)
    return found
