"""Reads the stored hyperparameter importance of a search and builds the request that computes it."""

import math
from collections.abc import Sequence
from typing import cast

from jobs.contracts.analysis import FEWEST_TRIALS, ImportanceAnswer, ImportanceRequest
from jobs.contracts.answers.search_results import ImportanceOut, ImportanceState
from jobs.contracts.hyperparameters import FloatParameter, IntParameter, Parameter, Value
from jobs.contracts.ranges import fraction_of
from jobs.contracts.search_space import Space
from jobs.models import Analysis, Job
from jobs.queries import outcomes
from jobs.states import FINAL, TrialState

SOURCE = (
    "F. Hutter, H. Hoos, K. Leyton-Brown: An Efficient Approach for Assessing Hyperparameter "
    "Importance, ICML 2014"
)


def completed(search: Job) -> int:
    """Return the number of completed trials with a score."""
    return search.trials.scored().count()


def shown(search: Job) -> ImportanceOut:
    """Return the newest result, the number of trials it is based on, and whether it is current.

    Returns:
        The API representation of the result. `state` is `too_few` (fewer than `needs` completed trials),
        `fresh`, `computing`, `stale` (based on fewer trials than there are now) or `missing`. `pruned` trials
        do not count, because scores after fewer epochs are not comparable. `over` is true if the search has
        ended.

    Raises:
        Conflict: the job is not a search.
    """
    outcomes.search_of(search)  # raises Conflict
    now = completed(search)
    row = search.analyses.filter(kind=Analysis.Kind.IMPORTANCE).first()
    return ImportanceOut(
        state=_state(now, row),
        needs=FEWEST_TRIALS,
        trials=row.trials if row is not None else 0,
        completed=now,
        pruned=search.trials.filter(state=TrialState.PRUNED).count(),
        over=search.state in FINAL,
        result=cast(ImportanceAnswer | None, row.result) if row is not None else None,
        error=row.error if row is not None else "",
        objective=outcomes.objective_of(search).metric,
        source=SOURCE,
    )


def _state(now: int, row: Analysis | None) -> ImportanceState:
    """Return the state of a stored analysis for a search with `now` completed trials."""
    if now < FEWEST_TRIALS:
        return "too_few"
    if row is None:
        return "missing"
    # A failure for these trials would repeat itself, so it counts as a result until another trial completes.
    if now == row.failed_at or (now == row.trials and _has_influences(row)):
        return "fresh"
    if row.until is not None:
        return "computing"
    return "missing" if row.result is None else "stale"


def _has_influences(row: Analysis) -> bool:
    """Return whether a result is complete: those of earlier releases have no influence of the values."""
    return all(entry.get("influence") for entry in (row.result or {}).get("importances", ()))


def request(search: Job) -> ImportanceRequest:
    """Return the request: every completed trial with its values scaled to 0 to 1.

    Raises:
        ValueError: fewer than `FEWEST_TRIALS` have a finite score, or no hyperparameter varies.
    """
    rows = [
        (values, score)
        for values, score in search.trials.scored().order_by("number").values_list("values", "score")
        if score is not None and math.isfinite(score)
    ]
    space = outcomes.widest_space(search)
    columns = scaled_values(space, [values for values, _ in rows])
    return ImportanceRequest(
        names=tuple(columns),
        columns=tuple(tuple(column) for column in columns.values()),
        scores=tuple(score for _, score in rows),
        direction=outcomes.objective_of(search).direction,
        choices={
            p.name: tuple(p.grid())
            for p in space
            if p.name in columns and not isinstance(p, IntParameter | FloatParameter)
        },
    )


def scaled_values(space: Space, rows: Sequence[dict[str, Value]]) -> dict[str, list[float | None]]:
    """Return the values of each hyperparameter, scaled to 0 to 1 by its sampling; None where it is inactive.

    Greater numbers are closer to 1. Value number i of k choices is (i + 0.5) / k. Hyperparameters with a
    single value are left out.
    """
    return {p.name: [_scaled(p, row.get(p.name)) for row in rows] for p in space if _varies(p)}


def _varies(parameter: Parameter) -> bool:
    if isinstance(parameter, IntParameter | FloatParameter):
        return parameter.min < parameter.max
    return len(parameter.grid()) > 1


def _scaled(parameter: Parameter, value: Value | None) -> float | None:
    if not isinstance(parameter, IntParameter | FloatParameter):
        known = list(parameter.grid())
        return (known.index(value) + 0.5) / len(known) if value in known else None
    if value is None or isinstance(value, str):
        return None
    low, high = float(parameter.min), float(parameter.max)
    # The logarithm of a value outside of the range may be undefined.
    return fraction_of(min(max(float(value), low), high), low, high, parameter.sampling)
