"""Reads a search's stored hyperparameter importance and builds the request that computes it."""

import math
from collections.abc import Sequence
from typing import Any, cast

from jobs.answers.search.search_results import ImportanceOut, ImportanceState
from jobs.messages.analysis import (
    FEWEST_TRIALS,
    FurtherObjective,
    ImportanceAnswer,
    ImportanceRequest,
)
from jobs.models import Analysis, Job
from jobs.queries.search import outcomes
from jobs.spec.sections.search import Objective
from jobs.spec.space.hyperparameters import FloatParameter, IntParameter, Parameter, Value
from jobs.spec.space.ranges import fraction_of
from jobs.spec.space.search_space import Space
from jobs.states import FINAL, TrialState

SOURCE = (
    "S. Watanabe, A. Bansal, F. Hutter: PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in "
    "Arbitrary Subspaces, IJCAI 2023"
)


def count_scored_trials(search: Job) -> int:
    """Count the completed trials with a score."""
    return search.trials.scored().count()


def importance_out(search: Job) -> ImportanceOut:
    """Return the newest importance, its trial count, and whether it is current.

    Returns:
        The result's API representation. `state` is `too_few` (fewer than `needs` completed trials), `fresh`,
        `computing`, `stale` (based on fewer trials than there are now) or `missing`. `pruned` trials do not
        count, because scores after fewer epochs are not comparable. `over` is true if the search has ended.

    Raises:
        Conflict: the job is not a search.
    """
    objectives = outcomes.search_of(search).ranked_by()  # raises Conflict
    now = count_scored_trials(search)
    row = search.analyses.filter(kind=Analysis.Kind.IMPORTANCE).first()
    if row is not None and not _is_of_this_release(row.result):
        row.result, row.trials = None, 0
    return ImportanceOut(
        state=_analysis_state(now, row),
        needs=FEWEST_TRIALS,
        trials=row.trials if row is not None else 0,
        completed=now,
        pruned=search.trials.filter(state=TrialState.PRUNED).count(),
        over=search.state in FINAL,
        result=cast(ImportanceAnswer | None, row.result) if row is not None else None,
        error=row.error if row is not None else "",
        objective=" and ".join(objective.metric for objective in objectives),
        source=SOURCE,
    )


def _is_of_this_release(result: dict[str, Any] | None) -> bool:
    """Return whether a stored result has all values; earlier releases measured something else."""
    return result is None or all("chance" in entry for entry in result.get("importances", ()))


def _analysis_state(now: int, row: Analysis | None) -> ImportanceState:
    """Return a stored analysis' state for a search with `now` completed trials."""
    if now < FEWEST_TRIALS:
        return "too_few"
    if row is None:
        return "missing"
    # A failure for these trials would repeat itself, so it counts as a result until another trial completes.
    if now == row.failed_at or (row.result is not None and now == row.trials):
        return "fresh"
    if row.until is not None:
        return "computing"
    return "missing" if row.result is None else "stale"


def analysis_request(search: Job) -> ImportanceRequest:
    """Return the request: every completed trial with its values scaled to 0 to 1.

    Raises:
        ValueError: fewer than `FEWEST_TRIALS` have a finite score, or no hyperparameter varies.
    """
    first, *further = outcomes.search_of(search).ranked_by()
    rows = _scored_trials(search, further)
    space = outcomes.widest_space(search)
    columns = scaled_values(space, [values for values, _ in rows])
    by_objective = [*zip(*(scores for _, scores in rows), strict=True)] or [()]
    return ImportanceRequest(
        names=tuple(columns),
        columns=tuple(tuple(column) for column in columns.values()),
        scores=by_objective[0],
        direction=first.direction,
        further=tuple(
            FurtherObjective(scores=scores, direction=objective.direction)
            for objective, scores in zip(further, by_objective[1:], strict=False)
        ),
        choices={
            p.name: tuple(p.grid())
            for p in space
            if p.name in columns and not isinstance(p, IntParameter | FloatParameter)
        },
    )


def _scored_trials(
    search: Job, further: Sequence[Objective]
) -> list[tuple[dict[str, Value], tuple[float, ...]]]:
    """Return values and scores for the trials with finite objectives."""
    further_scores = outcomes.scores_of(search.trials.all(), further) if further else {}
    rows = search.trials.scored().order_by("number").values_list("pk", "values", "score")
    scored = (
        (values, (score, *further_scores.get(pk, ())))
        for pk, values, score in rows
        if score is not None and (not further or pk in further_scores)
    )
    return [(values, scores) for values, scores in scored if all(map(math.isfinite, scores))]


def scaled_values(space: Space, rows: Sequence[dict[str, Value]]) -> dict[str, list[float | None]]:
    """Scale each hyperparameter's values to 0 to 1 by its sampling. Inactive ones are None.

    Greater numbers are closer to 1. Value number i of k choices is (i + 0.5) / k. Hyperparameters with a
    single value are left out.
    """
    return {
        p.name: [_scaled_value(p, row.get(p.name)) for row in rows] for p in space if _has_several_values(p)
    }


def _has_several_values(parameter: Parameter) -> bool:
    if isinstance(parameter, IntParameter | FloatParameter):
        return parameter.min < parameter.max
    return len(parameter.grid()) > 1


def _scaled_value(parameter: Parameter, value: Value | None) -> float | None:
    if not isinstance(parameter, IntParameter | FloatParameter):
        choices = list(parameter.grid())
        return (choices.index(value) + 0.5) / len(choices) if value in choices else None
    if value is None or isinstance(value, str):
        return None
    low, high = float(parameter.min), float(parameter.max)
    # A value outside the range may have no logarithm.
    return fraction_of(min(max(float(value), low), high), low, high, parameter.sampling)
