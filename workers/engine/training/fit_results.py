"""Reads the measures of a `fit`: the values of its epochs, and its result as KerasTuner understands it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import keras
import numpy as np

from jobs.spec.sections.search import Objective
from workers.engine.errors import CodeFitFailure
from workers.engine.evaluation.metric_results import numbers_of

LOSS = "loss"
UNNAMED = "objective"
"""The name of a number that a `fit` returned, where no objective gives it one."""
NOT_TRAINED = (
    "fit leaves the weights of the model that it gets as they are, so it may train a copy: the measures are "
    "those of the copy, but the model that is saved is not trained. Train the model that fit gets too, in a "
    "last call of model.fit"
)
EXPECTED = "return the history of model.fit, a number, or numbers by name"


class Untouched:
    """Remembers a model before a `fit`, which may train a copy of it instead."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._before = self._state()

    def is_still_so(self) -> bool:
        """Return whether the model has not been trained since, although it could be."""
        now = self._state()
        return len(now) == len(self._before) > 0 and all(map(np.array_equal, now, self._before))

    def _state(self) -> list[Any]:
        if not self._model.trainable_variables:
            return []
        # Steps count too: a step may only collect gradients.
        optimizer = getattr(self._model, "optimizer", None)
        steps = [] if optimizer is None else [optimizer.iterations]
        return [np.array(variable.value) for variable in (*self._model.trainable_variables, *steps)]


def training_names(model: Any) -> frozenset[str]:
    """Return the names of the values that Keras' `fit` measures on training rows for this model."""
    parts = [part for metric in model.metrics for part in (metric, *getattr(metric, "metrics", ()))]
    return frozenset({LOSS, *(part.name for part in parts)})


def names_in_histories(answer: Any) -> frozenset[str]:
    """Return the names of the values of training rows that a `fit` returned in a `History`, or in several.

    The model that it has trained may be another one than the one that was built.
    """
    parts = answer if isinstance(answer, list) else [answer]
    histories = (part.history for part in parts if isinstance(part, keras.callbacks.History))
    return frozenset(name for values in histories for name in values if not name.startswith("val_"))


def with_objectives(
    values: Mapping[str, float], objectives: Iterable[str], on_training_rows: frozenset[str]
) -> dict[str, float]:
    """Return values with each objective under its own name, if code reports it without `val_`.

    Args:
        values: of an epoch, or returned, by name.
        objectives: the names of the objectives.
        on_training_rows: names of values of the training rows, which are no objective; see `training_names`.
    """
    named = dict(values)
    # Beside values of validation rows, others are values of training rows.
    if any(name.startswith("val_") for name in values):
        return named
    for objective in objectives:
        plain = objective.removeprefix("val_")
        if objective not in values and plain in values and plain not in on_training_rows:
            named[objective] = values[plain]
    return named


def is_number(answer: Any) -> bool:
    """Return whether a `fit` returned the objective itself, and not values by name."""
    if isinstance(answer, list):
        return any(map(is_number, answer))
    return isinstance(answer, int | float | np.number) or getattr(answer, "shape", None) == ()


def returned_values(answer: Any, objective: Objective) -> dict[str, float]:
    """Return the values that a `fit` returned; none for one `History`, whose epochs are known.

    Of a list, each value is the mean over its parts; a `History` counts by its best epoch.

    Raises:
        CodeFitFailure: it returned something else.
    """
    if not isinstance(answer, list) or not answer:
        return {} if isinstance(answer, keras.callbacks.History) else _values_of(answer, objective)
    parts = [_values_of(part, objective) for part in answer]
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: float(np.mean([part[name] for part in parts if name in part])) for name in names}


def epochs_of(history: Any) -> list[dict[str, Any]]:
    """Return the values of each epoch in a `History`."""
    count = max(map(len, history.history.values()), default=0)
    return [
        {name: entries[epoch] for name, entries in history.history.items() if epoch < len(entries)}
        for epoch in range(count)
    ]


def _values_of(answer: Any, objective: Objective) -> dict[str, float]:
    if isinstance(answer, keras.callbacks.History):
        return _best_of([numbers_of(epoch) for epoch in epochs_of(answer)], objective)
    if isinstance(answer, dict):
        try:
            return numbers_of(answer)
        except (TypeError, ValueError) as error:
            raise CodeFitFailure(
                f"fit returned a dictionary with a value that is no number: {error}"
            ) from error
    if is_number(answer):
        return {objective.metric: float(answer)}
    if answer is None:
        raise CodeFitFailure("fit returned nothing: return the history of model.fit, or the objective")
    raise CodeFitFailure(f"fit returned {type(answer).__name__}: {EXPECTED}")


def _best_of(epochs: Sequence[dict[str, float]], objective: Objective) -> dict[str, float]:
    """Return the values of the best epoch by the objective; of the last one if none has it."""
    measured = [values for values in epochs if np.isfinite(values.get(objective.metric, np.nan))]
    if not measured:
        return epochs[-1] if epochs else {}
    return min(measured, key=lambda values: objective.cost(values[objective.metric]))
