"""Finds the meaning of a model's outputs: numbers, probabilities or logits."""

from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from jobs.spec.checks.dry_build import DataShape, Output
from workers.engine.arrays import Array
from workers.engine.errors import CodeBuildFailure
from workers.engine.models import keras_private
from workers.engine.models.graph import graph_of, has_graph
from workers.engine.models.keras_origin import is_of_keras
from workers.engine.models.own_code.failures import calling

ROWS, SCALE, TOLERANCE = 16, 10.0, 1e-2
"""Random rows that a model answers, their standard deviation, and how far the sum of probabilities may be
from one. A layer without activation answers such rows with other numbers."""


def meaning_of_outputs(
    model: Any, answer: Callable[[Array], Any], *, is_compiled: bool, shape: DataShape, width: int
) -> Output:
    """Return the meaning of a model's outputs: as its loss declares, else by its last layer or its answers.

    Args:
        model: the code's model.
        answer: returns its outputs for rows of the data.
        is_compiled: whether the code compiles it.
        shape: the data shape.
        width: how many outputs it has.

    Raises:
        CodeBuildFailure: it cannot be called.
    """
    if shape.task == "regression":
        return "numbers"
    loss = model.loss if is_compiled else None
    declared = getattr(loss, "from_logits", None)
    is_known = loss is not None and (declared is not None or is_of_keras(loss))
    is_logits = bool(declared) if is_known else _ends_linear(model, answer, shape)
    if shape.task == "binary" and width == 2:
        return "two_logits" if is_logits else "two_probabilities"
    return "logits" if is_logits else "probabilities"


def _ends_linear(model: Any, answer: Callable[[Array], Any], shape: DataShape) -> bool:
    """Return whether the last layer has no activation; if that is not known, whether its answers show it."""
    last = keras_private.operation_of(graph_of(model).outputs[0]) if has_graph(model) else None
    if (activation := getattr(last, "activation", None)) is not None:
        return activation is keras.activations.linear
    rows = np.random.default_rng(0).normal(scale=SCALE, size=(ROWS, *shape.input_shape))
    with calling(CodeBuildFailure, "calling the model"):
        answers = np.asarray(keras.tree.flatten(answer(rows.astype(np.float32)))[0], np.float32)
    answers = answers[np.isfinite(answers).all(axis=1)]
    if not answers.size:
        return False
    if answers.shape[1] > 1 and shape.task != "multilabel":
        return bool((answers < 0).any() or np.abs(answers.sum(axis=1) - 1).max() > TOLERANCE)
    return bool((answers < 0).any() or (answers > 1).any() or not answers.any())
