"""Finds the parts of Keras' training and evaluation that a model class of users replaces."""

from collections.abc import Sequence
from types import MethodType
from typing import Any

import keras

from workers.engine.errors import CodeBuildFailure

METHODS = (
    "fit",
    "train_step",
    "test_step",
    "predict_step",
    "compute_loss",
    "compute_metrics",
    "compute_loss_and_updates",
    "stateless_compute_loss",
    "make_train_function",
    "make_test_function",
)
"""Methods that a class may replace. Then only Keras' own `fit` trains its model."""


MEASURES = ("metrics", "get_metrics_result")
"""Parts that a class may replace to measure more than `compile` gives."""


def replaced_by(model: Any) -> Sequence[str]:
    """Return which of these methods the model's class has replaced."""
    names = (*METHODS, *MEASURES) if model.compiled else METHODS
    return [name for name in names if _is_replaced(model, name)]


def _is_replaced(model: Any, name: str) -> bool:
    return getattr(type(model), name, None) is not getattr(keras.Model, name, None)


def can_evaluate(model: Any) -> bool:
    """Return whether Keras' `fit` can evaluate a compiled model on validation rows.

    A class with its own training step may do without a loss, but then Keras has none for these rows.
    """
    return model.loss is not None or any(_is_replaced(model, name) for name in ("test_step", "compute_loss"))


def keep_evaluation(model: Any) -> None:
    """Let Keras evaluate a model whose class has its own `compute_loss_and_updates`, for its training step.

    Keras' guides give it other arguments, but `test_step` of Keras calls a method with this name.
    """
    name = "compute_loss_and_updates"
    if not _is_replaced(model, name) or _is_replaced(model, "test_step"):
        return

    def test_step(state: Any, data: Any) -> Any:
        setattr(model, name, MethodType(getattr(keras.Model, name), model))
        try:
            return keras.Model.test_step(model, state, data)
        finally:
            delattr(model, name)

    model.test_step = test_step


def check_compilation(model: Any) -> None:
    """Check that Keras' `fit`, or the loop for templates, has something to train the model by.

    Raises:
        CodeBuildFailure: it has not.
    """
    replaced = replaced_by(model)
    if model.compiled and model.loss is None and not replaced:
        raise CodeBuildFailure(
            "the code compiles the model without a loss: add loss=… to compile, or leave compile out, and "
            "the loss of the experiment is used"
        )
    if replaced and not model.compiled:
        raise CodeBuildFailure(
            f"{type(model).__name__} has its own {', '.join(replaced)}, but the code does not compile the "
            "model: add model.compile(optimizer=…) before it returns the model"
        )
