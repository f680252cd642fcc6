"""What came out of a search or a family of jobs: best trials, candidates, results."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, pstdev
from typing import Any, NamedTuple

from django.db.models import Case, F, IntegerField, Q, QuerySet, When

from jobs.contracts.chosen_trials import Pooled
from jobs.contracts.external_search import OutsideSearch
from jobs.contracts.pareto import fronts
from jobs.contracts.search import Objective, SearchSpec
from jobs.contracts.search_space import Space
from jobs.errors import Conflict
from jobs.models import Dataset, Execution, Job, Project, Revision, Trial
from jobs.states import JobKind, JobState, TrialState

FAILING = "failing"
"""The key of a root's payload that holds why it fails, while workers still hold parts of it."""

BEYOND = "beyond_space"
"""The key that holds how many of its algorithm's trials lie outside a space that was made narrower."""

EXHAUSTED = "exhausted"
"""The key that holds whether the algorithm has nothing more to suggest."""

FIRST = "first_revision"
"""The key that holds which revision a search began with, once it was revised."""

WITHDRAWN = "withdrawn"
"""The source of a trial that its algorithm took back before it began: it counts as none."""


MEASURED = (TrialState.COMPLETED, TrialState.PAUSED, TrialState.PRUNED)
"""States of an execution that has a score: it ended, or was left at an epoch whose figures are known."""
OUTSIDE = "outside"
"""The key of the payload that holds an OutsideSearch."""


def outside_of(root: Job) -> OutsideSearch:
    """Return how a search is run whose trials outside scripts run."""
    return OutsideSearch.model_validate(root.payload[OUTSIDE])


def pooled_of(job: Job) -> Pooled | None:
    """Return the trials that somebody chose for an ensemble; None of every other job."""
    return Pooled.read(job.payload)


def leads_on(root: Job) -> bool:
    """Say whether a root has steps that follow it; gates, registrations and profiles are one task each."""
    return root.kind in (JobKind.SEARCH, JobKind.TRAIN) or pooled_of(root) is not None


def objective_of(root: Job) -> Objective:
    """Return the objective of a root job; validation loss where there is no search."""
    if root.is_outside:
        return outside_of(root).objective()
    spec = root.revision.spec if root.revision is not None else None
    return spec.search.objective if spec is not None and spec.search is not None else Objective()


def search_of(root: Job) -> SearchSpec:
    """Return the search of a root job's spec; of one that outside scripts run, with the space told so far.

    Raises:
        Conflict: the job has none.
    """
    if root.is_outside:
        return outside_of(root).search()
    search = root.revision.spec.search if root.revision is not None else None
    if search is None:
        raise Conflict(f"job {root.pk} is a {root.kind}, not a search")
    return search


def widest_space(root: Job) -> Space:
    """Return the space that a search began with: every trial lies inside, even if it is narrower now."""
    if FIRST not in root.payload:
        return search_of(root).space
    first = Revision.objects.get(pk=root.payload[FIRST]).spec.search
    return first.space if first is not None else ()


def score_of(trial: Trial) -> tuple[float | None, float | None]:
    """Return mean and spread over a trial's executions of each one's best epoch so far."""
    rows = trial.executions.filter(state__in=MEASURED).values_list("score", flat=True)
    scores = [score for score in rows if score is not None]
    return (fmean(scores), pstdev(scores)) if scores else (None, None)


def trials_planned(root: Job) -> int:
    """Return how many trials the algorithm of a search will make, if nothing ends it before."""
    if root.is_outside:
        return outside_of(root).planned()
    search = search_of(root)
    planned = search.trials_planned(root.revision.spec.fit.epochs) if root.revision is not None else 0
    if search.info.enumerates_grid:  # trials outside the grid are none of its points
        return min(search.max_trials, planned + int(root.payload.get(BEYOND, 0)))
    return planned


def top_rung(root: Job) -> int | None:
    """Return the epoch at which the highest rung of a search ends; None where it has no rungs."""
    search = search_of(root)
    if root.revision is None or not search.info.has_rungs:
        return None
    return search.rung_options().ladder(root.revision.spec.fit.epochs)[-1]


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
    spec = root.revision.spec if root.revision is not None else None
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
    metrics = job.results.get("metrics", {}).get("validation", {})
    value = metrics.get(objective.metric.removeprefix("val_"))
    if isinstance(value, dict):
        value = value.get("value")
    return float(value) if isinstance(value, int | float) else None


def best_single(root: Job) -> Job:
    """Return the training job with the best validation score; the root itself without a search.

    Test data never chooses: candidates are compared on validation data only.
    """
    if root.kind == JobKind.TRAIN:
        return root
    objective = objective_of(root)
    trained = list(root.children.filter(kind=JobKind.TRAIN, state=JobState.COMPLETED).order_by("ordinal"))
    best = trained[0]
    for job in trained[1:]:
        score, leader = validation_score(job, objective), validation_score(best, objective)
        if score is not None and (leader is None or objective.better(score, leader)):
            best = job
    return best


def final_candidate(root: Job) -> Job:
    """Return the job whose model goes on to quantization: the ensemble if there is one, else the best."""
    ensemble = root.children.filter(kind=JobKind.ENSEMBLE, state=JobState.COMPLETED).first()
    return ensemble or best_single(root)


def dataset_in(project: Project, slug: str) -> Dataset | None:
    """Return the data set that a slug means inside a project: its own, or else the bundled one."""
    own_or_bundled = Dataset.objects.filter(Q(project=project) | Q(project=None), slug=slug)
    return own_or_bundled.order_by(F("project").asc(nulls_last=True)).first()


def results(root: Job) -> dict[str, Any]:
    """Return the `results` of a root job from its rows."""
    if not leads_on(root):
        return dict(root.results)
    out: dict[str, Any] = dict(root.results)
    best = best_trials(root, limit=1) if root.kind == JobKind.SEARCH else Trial.objects.none()
    if figures := best.values("number", "values", "score", "std").first():
        out["best_trial"] = figures
    done = [child for child in root.children.all() if child.state == JobState.COMPLETED]
    candidates = {job.kind: job for job in done if job.kind != JobKind.TRAIN}
    if root.kind == JobKind.TRAIN or any(job.kind == JobKind.TRAIN for job in done):
        candidates["best"] = best_single(root)
    metrics = {
        name: job.results.get("metrics", {})
        for name, job in candidates.items()
        if name in ("best", JobKind.ENSEMBLE, JobKind.QUANTIZE)
    }
    if metrics:
        out["candidates"] = metrics
        chosen = candidates.get(JobKind.ENSEMBLE) or candidates["best"]
        out["metrics"] = chosen.results.get("metrics", {})
    return out
