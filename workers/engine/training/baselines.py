"""Measures the constant prediction on the validation rows of an execution, by the search's objective."""

import math
from typing import NamedTuple

import numpy as np

from jobs.spec.sections.baseline import Baseline
from jobs.spec.sections.evaluation import Turn
from jobs.spec.sections.search import Objective
from workers.engine.arrays import Array
from workers.engine.data.dataset import Dataset
from workers.engine.data.folds import Fold
from workers.engine.errors import CodeFailure
from workers.engine.evaluation.constants import NAMES_OF_KERAS, ConstantRow, constant_rows
from workers.engine.evaluation.intervals import wilson
from workers.engine.evaluation.weighting import Weights
from workers.engine.training.plan import EvaluationSet

VALIDATION = "val_"


class _Rows(NamedTuple):
    """Targets and weights of some rows."""

    y: Array
    weights: Weights


def measure_baseline(
    objective: Objective, turn: Turn, evaluation: EvaluationSet, dataset: Dataset, rows: Fold
) -> Baseline:
    """Return the score of the constant prediction for an execution's rows.

    It is measured as that of the model: by the same function, on the same rows and with the same weights.

    Args:
        objective: the search's objective.
        turn: the execution's part of the evaluation.
        evaluation: measures the execution's model.
        dataset: the data set.
        rows: the execution's rows.
    """
    part = Baseline(
        metric=objective.metric, repeat=turn.repeat if turn.fold is not None else 1, fold=turn.fold
    )
    name = objective.metric.removeprefix(VALIDATION)
    if name == objective.metric or not evaluation.computes(name):
        return part
    of_train = dataset.weights_of(rows.train)
    train = _Rows(dataset.y[rows.train], None if of_train is None else of_train.values)
    candidates = constant_rows(name, evaluation.loss, dataset.profile, train.y, train.weights)
    if not candidates:
        return part
    try:
        chosen = _best(objective, name, evaluation, candidates, train)
        score = _score(name, evaluation, chosen, _Rows(evaluation.y, evaluation.weights))
    except CodeFailure:
        # A metric in code of users may refuse such predictions.
        return part
    if not math.isfinite(score):
        return part
    low, high = _interval(name, evaluation, dataset, score)
    return part.model_copy(update={"score": score, "constant": chosen.constant, "low": low, "high": high})


def _best(
    objective: Objective, name: str, evaluation: EvaluationSet, candidates: list[ConstantRow], train: _Rows
) -> ConstantRow:
    """Return the candidate with the best score on the training rows."""
    if len(candidates) == 1:
        return candidates[0]
    return min(candidates, key=lambda row: objective.cost(_score(name, evaluation, row, train)))


def _score(name: str, evaluation: EvaluationSet, row: ConstantRow, rows: _Rows) -> float:
    predictions = np.broadcast_to(row.outputs, (len(rows.y), len(row.outputs)))
    return float(evaluation.score(name, rows.y, predictions, rows.weights))


def _interval(
    name: str, evaluation: EvaluationSet, dataset: Dataset, score: float
) -> tuple[float | None, float | None]:
    """Return the interval of an accuracy, which is a proportion of rows that count once."""
    if (
        NAMES_OF_KERAS.get(name, name) != "accuracy"
        or evaluation.weights is not None
        or dataset.task == "multilabel"
    ):
        return None, None
    rows = len(evaluation.y)
    return wilson(round(score * rows), rows)
