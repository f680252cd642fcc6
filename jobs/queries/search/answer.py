"""Builds a search's answer: its best trial, how sure its lead is, and what can be done next."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import fmean

from jobs.answers.search.search_results import (
    AnswerOut,
    BaselineOut,
    LeadOut,
    RankedTrialOut,
    RecommendedOut,
    ScoringOut,
)
from jobs.models import Execution, Job, Trial
from jobs.queries.code import dry_builds
from jobs.queries.search import (
    baseline,
    importance,
    lead,
    outcomes,
    recommendation,
    scoring,
    templates_tried,
    trials,
)
from jobs.spec.sections.evaluation import KFold
from jobs.spec.sections.search import SearchSpec
from jobs.spec.space import size as space_size
from jobs.spec.space.narrowing import NotNarrower, contains
from jobs.spec.space.search_space import FloatParameter, IntParameter, Space, Value
from jobs.spec.space.smaller_space import bounds_at_best, describe_changes, shrink_space
from jobs.states import FINAL, TrialState

GOOD_SHARE = 4
"""One trial in so many is a good one, whose choices a smaller space keeps."""
FEWEST_GOOD, MOST_GOOD = 3, 20
REPEATS = 5
"""How many further trainings are offered if nothing is known about the spread."""


def answer_of_search(search: Job) -> AnswerOut:
    """Return a search's answer; `over` is false while it may still change.

    Raises:
        Conflict: the job is not a search.
    """
    spec = outcomes.search_of(search)
    ranked = list(outcomes.best_trials(search, limit=2))
    how = scoring.scoring_of_search(search)
    best = ranked[0] if ranked else None
    compared = baseline.compare_with_constant(search, best)
    # Around values that are no better than a constant prediction, there is nothing to look for.
    base = best if compared is None or compared.is_beaten else None
    at_edge = bounds_at_best(spec.space, values_in_use(search, spec, base)) if base is not None else {}
    return AnswerOut(
        over=is_over(search),
        scoring=ScoringOut(metric=how.metric, direction=how.direction, rows=how.rows, text=how.text),
        best=ranked_trial_out(best) if best is not None else None,
        next=ranked_trial_out(ranked[1]) if len(ranked) > 1 else None,
        baseline=baseline_out(compared) if compared is not None else None,
        lead=_lead_out(search, spec, ranked),
        repeats=repeats_to_offer(search, ranked) if base is not None else None,
        smaller_range=_describe_smaller_space(search, spec, base) if base is not None else [],
        at_edge=[*at_edge],
        at_declared_edge=_declared_at_bound(search, at_edge) if at_edge else [],
        importance=importance.importance_out(search),
        recommended=_recommended_out(search),
        templates=templates_tried.template_results(search),
    )


def baseline_out(compared: baseline.Comparison) -> BaselineOut:
    """Return the constant prediction, as the API represents it."""
    return BaselineOut(
        value=compared.score,
        constant=compared.constant.describe(),
        beaten=compared.is_beaten,
        may_be_chance=compared.may_be_chance,
        text=compared.describe(),
        remedy="" if compared.is_beaten else baseline.REMEDIES,
    )


def _recommended_out(search: Job) -> RecommendedOut | None:
    """Return the model to use, as the API represents it."""
    recommended = recommendation.recommend_model(search)
    if recommended is None:
        return None
    job = recommended.job
    return RecommendedOut(
        job=None if job is None else job.pk, title="" if job is None else job.label, why=recommended.why
    )


def _declared_at_bound(search: Job, at_edge: Mapping[str, float]) -> list[str]:
    """Return the hyperparameters at a bound that the code declares. No experiment can widen it."""
    declared = {parameter.name: parameter for parameter in dry_builds.declared_space(search)}
    bounds = {
        name: (float(parameter.min), float(parameter.max))
        for name, parameter in declared.items()
        if isinstance(parameter, IntParameter | FloatParameter)
    }
    return [name for name, bound in at_edge.items() if bound in bounds.get(name, ())]


def is_over(search: Job) -> bool:
    """Return whether no trial can change a search's answer any more."""
    return search.state in FINAL or (
        not trials.accepts_trials(search) and not search.trials.unfinished().exists()
    )


def ranked_trial_out(trial: Trial) -> RankedTrialOut:
    """Return one of the best trials, as the API represents it."""
    trainings = sum(row.score is not None for row in trial.executions.all())
    return RankedTrialOut(
        number=trial.number,
        state=trial.state,
        values=trial.values,
        score=trial.score,
        std=trial.std,
        trainings=trainings,
    )


def _lead_out(search: Job, spec: SearchSpec, ranked: list[Trial]) -> LeadOut | None:
    """Return the best trial's lead over the next. None with several objectives or a single trial."""
    if spec.objectives is not None or len(ranked) < 2:
        return None
    comparison = _compare_best(search, spec, ranked)
    if comparison is None:
        return None
    return LeadOut(
        **comparison._asdict() | {"trainings": [*comparison.trainings]}, confidence=lead.CONFIDENCE
    )


def _compare_best(search: Job, spec: SearchSpec, ranked: list[Trial]) -> lead.Lead | None:
    best, other = (_scores_of_values(search, trial) for trial in ranked)
    maximize = spec.objective.direction == "max"
    if not best or not other:
        return None
    if isinstance(spec.evaluation, KFold):
        pair = [_mean_scores_by_fold(rows) for rows in (best, other)]
        if not pair[0].keys() & pair[1].keys():
            return None
        return lead.lead_of_folds(*pair, folds=spec.evaluation.folds, maximize=maximize)
    return lead.lead_of_samples(*([score for _, score in rows] for rows in (best, other)), maximize=maximize)


def _scores_of_values(search: Job, trial: Trial) -> list[tuple[lead.Fold, float]]:
    """Return score, repeat and fold for every training with a trial's values.

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
    scores = rows.order_by("trial__number", "number").values_list("repeat", "fold", "score")
    return [((repeat, fold or 0), score) for repeat, fold, score in scores if score is not None]


def _mean_scores_by_fold(rows: list[tuple[lead.Fold, float]]) -> Mapping[lead.Fold, float]:
    scores_by_fold: dict[lead.Fold, list[float]] = defaultdict(list)
    for fold, score in rows:
        scores_by_fold[fold].append(score)
    return {fold: fmean(scores) for fold, scores in scores_by_fold.items()}


def repeats_to_offer(search: Job, ranked: list[Trial]) -> int | None:
    """Return how many more trainings to offer for the best two trials. None if they would show nothing."""
    if search.revision is None or len(ranked) < 2:
        return None
    spec = outcomes.search_of(search)
    comparison = _compare_best(search, spec, ranked) if spec.objectives is None else None
    # A difference that cannot be shown with any number of trainings is not worth one.
    if comparison is None or (comparison.verdict == "unclear" and comparison.needed is None):
        return None
    folds = spec.evaluation.trainings()
    trainings = max(REPEATS, comparison.needed or 0)
    return max(-(-trainings // folds), 2)


def values_in_use(search: Job, spec: SearchSpec, trial: Trial) -> dict[str, Value]:
    """Return those of a trial's values that have an effect, as far as conditions and the dry build show."""
    values = {
        row.name: trial.values[row.name]
        for row in spec.space
        if row.name in trial.values and row.is_active(trial.values)
    }
    unasked = dry_builds.unasked_names(search, values)
    return {name: value for name, value in values.items() if name not in unasked}


def smaller_space(search: Job, spec: SearchSpec, best: Trial) -> Space | None:
    """Return a smaller space around the best trial; None if it would have no new configuration."""
    if search.revision is None or spec.info.enumerates_grid:
        return None
    count = search.trials.filter(score__isnull=False).count() // GOOD_SHARE
    count = min(max(count, FEWEST_GOOD), MOST_GOOD)
    good = [trial.values for trial in outcomes.best_trials(search, limit=count)]
    try:
        space = shrink_space(spec.space, values_in_use(search, spec, best), good)
    except NotNarrower:  # the search was narrowed after its best trial was tried
        return None
    return space if space != spec.space and _has_new_values(search, space) else None


def _has_new_values(search: Job, space: Space) -> bool:
    """Return whether a space has a configuration that the search has not tried."""
    size = space_size.size_of_space(space).distinct
    if size is None or size > search.trials.count():
        return True  # most spaces: their trials need not be read
    rows = search.trials.values_list("values_digest", "values")
    whole = search.payload.whole_values
    return size > len({digest for digest, values in rows if contains(space, whole(values))})


def _describe_smaller_space(search: Job, spec: SearchSpec, best: Trial) -> list[str]:
    space = smaller_space(search, spec, best)
    return [] if space is None else describe_changes(spec.space, space)
