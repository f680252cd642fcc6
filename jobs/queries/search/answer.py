"""Builds the answer of a search: its best trial, how sure its lead is, and what can be done next."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

from jobs.answers.search.search_results import AnswerOut, LeadOut, RankedTrialOut, ScoringOut
from jobs.models import Execution, Job, Trial
from jobs.queries.code import dry_builds
from jobs.queries.search import importance, lead, outcomes, scoring, templates_tried, trials
from jobs.spec.sections.evaluation import KFold
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space import size as space_size
from jobs.spec.space.narrowing import NotNarrower, contains
from jobs.spec.space.search_space import FloatParameter, IntParameter, Space
from jobs.spec.space.smaller_space import bounds_at_best, describe_changes, shrink_space
from jobs.states import FINAL, TrialState

GOOD_SHARE = 4
"""One trial in so many is a good one, whose choices a smaller space keeps."""
FEWEST_GOOD, MOST_GOOD = 3, 20
REPEATS = 5
"""The number of further trainings that is offered if nothing is known about the spread."""


def of_search(search: Job) -> AnswerOut:
    """Return the answer of a search; `over` is false while it may still change.

    Raises:
        Conflict: the job is not a search.
    """
    spec = outcomes.search_of(search)
    ranked = list(outcomes.best_trials(search, limit=2))
    how = scoring.of_search(search)
    best = ranked[0] if ranked else None
    at_edge = bounds_at_best(spec.space, best.values) if best is not None else {}
    return AnswerOut(
        over=is_over(search),
        scoring=ScoringOut(metric=how.metric, direction=how.direction, rows=how.rows, text=how.text),
        best=ranked_trial(best) if best is not None else None,
        next=ranked_trial(ranked[1]) if len(ranked) > 1 else None,
        lead=_lead(search, spec, ranked),
        repeats=repeats(search, ranked),
        smaller_range=_sentences(search, spec, best) if best is not None else [],
        at_edge=[*at_edge],
        at_declared_edge=_declared(search, at_edge) if at_edge else [],
        importance=importance.shown(search),
        templates=templates_tried.of_search(search),
    )


def _declared(search: Job, at_edge: Mapping[str, float]) -> list[str]:
    """Return those hyperparameters at a bound that the code declares, which no experiment can widen."""
    declared = {parameter.name: parameter for parameter in dry_builds.declared_of(search)}
    bounds = {
        name: (float(parameter.min), float(parameter.max))
        for name, parameter in declared.items()
        if isinstance(parameter, IntParameter | FloatParameter)
    }
    return [name for name, bound in at_edge.items() if bound in bounds.get(name, ())]


def is_over(search: Job) -> bool:
    """Return whether no trial of a search can change its answer any more."""
    return search.state in FINAL or (
        not trials.accepts_trials(search) and not search.trials.unfinished().exists()
    )


def ranked_trial(trial: Trial) -> RankedTrialOut:
    """Return one of the best trials in the form of the API."""
    trainings = sum(row.score is not None for row in trial.executions.all())
    return RankedTrialOut(
        number=trial.number,
        state=trial.state,
        values=trial.values,
        score=trial.score,
        std=trial.std,
        trainings=trainings,
    )


def _lead(search: Job, spec: SearchSpec, ranked: list[Trial]) -> LeadOut | None:
    """Return the lead of the best trial over the next; None with several objectives or a single trial."""
    if spec.objectives is not None or len(ranked) < 2:
        return None
    found = _compared(search, spec, ranked)
    if found is None:
        return None
    return LeadOut(**found._asdict() | {"trainings": [*found.trainings]}, confidence=lead.CONFIDENCE)


def _compared(search: Job, spec: SearchSpec, ranked: list[Trial]) -> lead.Lead | None:
    best, other = (_scores(search, trial) for trial in ranked)
    maximize = spec.objective.direction == "max"
    if not best or not other:
        return None
    if isinstance(spec.evaluation, KFold):
        pair = [_by_fold(rows) for rows in (best, other)]
        if not pair[0].keys() & pair[1].keys():
            return None
        return lead.of_folds(*pair, folds=spec.evaluation.folds, maximize=maximize)
    return lead.of_samples(*([score for _, score in rows] for rows in (best, other)), maximize=maximize)


def _scores(search: Job, trial: Trial) -> list[tuple[lead.Fold, float]]:
    """Return the scores of all trainings with a trial's values, each with its repeat and fold.

    A trial that was queued again by hand has other seeds, so its trainings count too. Copied scores do not.
    """
    rows = Execution.objects.filter(
        trial__job=search,
        trial__values_digest=trial.values_digest,
        trial__answered_by=None,
        state__in=outcomes.SCORED_STATES,
        score__isnull=False,
    )
    if trial.state == TrialState.COMPLETED:
        # Scores after fewer epochs do not compare.
        rows = rows.filter(state=TrialState.COMPLETED)
    found = rows.order_by("trial__number", "number").values_list("repeat", "fold", "score")
    return [((repeat, fold or 0), score) for repeat, fold, score in found if score is not None]


def _by_fold(rows: list[tuple[lead.Fold, float]]) -> Mapping[lead.Fold, float]:
    found: dict[lead.Fold, list[float]] = defaultdict(list)
    for fold, score in rows:
        found[fold].append(score)
    return {fold: fmean(scores) for fold, scores in found.items()}


def repeats(search: Job, ranked: list[Trial]) -> int | None:
    """Return how many further trainings of the best two trials to offer; None if they would show nothing."""
    if search.revision is None or len(ranked) < 2:
        return None
    spec = outcomes.search_of(search)
    found = _compared(search, spec, ranked) if spec.objectives is None else None
    # A difference that no number of trainings of a trial would show is not worth any.
    if found is None or (found.verdict == "unclear" and found.needed is None):
        return None
    folds = spec.evaluation.trainings()
    wanted = max(REPEATS, found.needed or 0)
    return max(-(-wanted // folds), 2)


def smaller_space(search: Job, spec: SearchSpec, best: Trial) -> Space | None:
    """Return a smaller space around the best trial; None if it would have no new configuration."""
    if search.revision is None or spec.info.enumerates_grid:
        return None
    count = search.trials.filter(score__isnull=False).count() // GOOD_SHARE
    count = min(max(count, FEWEST_GOOD), MOST_GOOD)
    good = [trial.values for trial in outcomes.best_trials(search, limit=count)]
    try:
        space = shrink_space(spec.space, best.values, good)
    except NotNarrower:  # the search was narrowed after its best trial was tried
        return None
    return space if space != spec.space and _has_new_values(search, space) else None


def _has_new_values(search: Job, space: Space) -> bool:
    """Return whether a space has a configuration that the search has not tried."""
    size = space_size.size_of_space(space).distinct
    if size is None or size > search.trials.count():
        return True  # most spaces: their trials need not be read
    rows = search.trials.values_list("values_digest", "values")
    return size > len({digest for digest, values in rows if contains(space, values)})


def _sentences(search: Job, spec: SearchSpec, best: Trial) -> list[str]:
    space = smaller_space(search, spec, best)
    return [] if space is None else describe_changes(spec.space, space)
