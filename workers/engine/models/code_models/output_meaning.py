"""Finds the meaning of a model's outputs: numbers, probabilities or logits."""

from collections.abc import Callable, Iterator
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
PROBABILITIES = ("softmax", "sigmoid", "hard_sigmoid", "sparsemax")
"""Activations whose results are probabilities, whatever the loss takes."""
SUM_TO_ONE = ("softmax", "sparsemax")
MARGINS = ("hinge", "squared_hinge", "categorical_hinge")
"""Losses of Keras that train scores: a class is chosen by their sign, or by the largest one."""


def meaning_of_outputs(
    model: Any, answer: Callable[[Array], Any], *, is_compiled: bool, shape: DataShape, width: int
) -> Output:
    """Return the meaning of a model's outputs: by its last layer, its loss, or its answers.

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
    is_logits = _are_logits(model, answer, only_loss(model) if is_compiled else None, shape)
    if shape.task == "binary" and width == 2:
        return "two_logits" if is_logits else "two_probabilities"
    return "logits" if is_logits else "probabilities"


def only_loss(model: Any) -> Any:
    """Return a compiled model's loss, also if it is the only one in a list or by the name of an output."""
    loss = only_part(model.loss)
    return loss[0] if isinstance(loss, list | tuple) and len(loss) == 1 else loss


def only_part(parts: Any) -> Any:
    """Return the part that is given by the name of the only output; anything else as it is."""
    return next(iter(parts.values())) if isinstance(parts, dict) and len(parts) == 1 else parts


def loss_name(loss: Any) -> str:
    """Return the name of a loss or metric in snake case."""
    name = loss if isinstance(loss, str) else getattr(loss, "__name__", type(loss).__name__)
    return str(keras_private.to_snake_case(name))


def _are_logits(model: Any, answer: Callable[[Array], Any], loss: Any, shape: DataShape) -> bool:
    activation = _activation_of(model)
    if activation in PROBABILITIES:
        # A loss that takes logits would only apply the function once more.
        return False
    if _trains_margins(loss):
        return True
    declared = getattr(loss, "from_logits", None)
    if loss is not None and declared is None and is_of_keras(loss):
        declared = False
    if declared is not None:
        return bool(declared) and (bool(activation) or not _are_probabilities(_answers(answer, shape), shape))
    return activation == "linear" or not _are_probabilities(_answers(answer, shape), shape)


def _trains_margins(loss: Any) -> bool:
    return loss is not None and is_of_keras(loss) and loss_name(loss) in MARGINS


def _activation_of(model: Any) -> str:
    """Return the name of the activation of a model's last layer; empty if it is not known."""
    last = keras_private.operation_of(graph_of(model).outputs[0]) if has_graph(model) else None
    activation = getattr(last, "activation", None)
    if activation is None:
        # Softmax is a layer too, and an operation.
        return name if (name := loss_name(last)) in PROBABILITIES else ""
    return loss_name(activation) if is_of_keras(activation) else ""


def _answers(answer: Callable[[Array], Any], shape: DataShape) -> Array:
    """Return the outputs for some random rows, without rows that are not defined."""
    rows = np.random.default_rng(0).normal(scale=SCALE, size=(ROWS, *shape.input_shape))
    with calling(CodeBuildFailure, "calling the model"):
        answers = np.asarray(keras.tree.flatten(answer(rows.astype(np.float32)))[0], np.float32)
    return answers[np.isfinite(answers).all(axis=1)]


def _are_probabilities(answers: Array, shape: DataShape) -> bool:
    if not answers.size:
        return True
    if answers.shape[1] > 1 and shape.task != "multilabel":
        return bool((answers >= 0).all() and np.abs(answers.sum(axis=1) - 1).max() <= TOLERANCE)
    return bool((answers >= 0).all() and (answers <= 1).all() and answers.any())


def notes_on_outputs(
    model: Any, answer: Callable[[Array], Any], output: Output, shape: DataShape
) -> Iterator[str]:
    """Yield a sentence if the outputs of a compiled model are no probabilities, or its loss takes logits.

    Args:
        model: the code's model.
        answer: returns its outputs for rows of the data, without what makes probabilities of them.
        output: their meaning.
        shape: the data shape.
    """
    if output == "numbers":
        return
    loss = only_loss(model)
    if output.endswith("logits"):
        if _trains_margins(loss):
            yield (
                f"the loss {loss_name(loss)} trains scores, not probabilities: the probabilities that are "
                "shown are made of the scores, so classes and their order are right, but a value of 0.8 is "
                "not right in 80 % of cases; for that, take a crossentropy"
            )
        return
    if getattr(loss, "from_logits", None):
        yield (
            "the loss takes logits (from_logits=True), but the outputs are probabilities already, so the "
            f"loss applies {_activation_of(model) or 'softmax'} a second time: leave out from_logits=True or "
            "the activation. The outputs are shown as they are"
        )
    elif _activation_of(model) not in SUM_TO_ONE and not _are_probabilities(
        answers := _answers(answer, shape), shape
    ):
        is_in_range = bool((answers >= 0).all() and (answers <= 1).all())
        found = "do not add up to 1 for a row" if is_in_range else "may be below 0 or above 1"
        yield (
            f"the outputs are shown as probabilities, since the loss takes them so, but they {found}: end "
            f"the model with the activation {_wanted(shape, answers)}, or take a loss with from_logits=True "
            "if it has none"
        )


def _wanted(shape: DataShape, answers: Array) -> str:
    return "sigmoid" if shape.task == "multilabel" or answers.shape[1] == 1 else "softmax"
