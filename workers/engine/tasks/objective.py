"""Measures a retrained model's objective with its interval, to compare the model with its trial."""

import numpy as np

from jobs.messages.training import Measured
from workers.engine.arrays import Array
from workers.engine.data.weights import RowWeights
from workers.engine.evaluation.intervals import bootstrap
from workers.engine.evaluation.weighting import of_rows
from workers.engine.report import finite_or_none
from workers.engine.training.plan import EvaluationSet

DRAWS = 2_000_000
"""Rows drawn for an interval, so that it takes a second."""


def measure_objective(
    metric: str,
    evaluation: EvaluationSet,
    y: Array,
    p: Array,
    seed: int,
    weights: RowWeights | None = None,
) -> Measured:
    """Return an objective with its 95 % interval.

    Args:
        metric: the objective's metric, with the prefix `val_`.
        evaluation: names the loss and has the target's scale.
        y: targets, (rows,) or (rows, outputs).
        p: predictions, (rows, outputs).
        seed: for the bootstrap.
        weights: row weights; None if each counts once.
    """
    name = metric.removeprefix("val_")
    values = None if weights is None else weights.values

    def score(drawn: Array) -> float:
        return evaluation.score(name, y[drawn], p[drawn], of_rows(values, drawn))

    low, high = bootstrap(score, len(y), seed, draws=min(DRAWS, evaluation.draws * len(y)))
    return Measured(
        metric=metric,
        value=finite_or_none(score(np.arange(len(y)))),
        low=finite_or_none(low),
        high=finite_or_none(high),
        rows=len(y),
    )
