"""Records the measures of the `fit` in a dry build."""

from collections.abc import Mapping
from typing import Any

import keras

from jobs.spec.sections.search import Objective
from workers.engine.evaluation.metric_results import notes_on, numbers_of
from workers.engine.training.fit_results import (
    UNNAMED,
    is_number,
    names_in_histories,
    returned_values,
    training_names,
)


class Measured:
    """The names that an objective may have.

    Attributes:
        names: of the values in the epochs and in the result, and of those that count as values of validation
            rows.
        returns_number: whether a `fit` returned a number, which is the objective under any name.
        notes: sentences about metrics that return several numbers.
    """

    def __init__(self) -> None:
        self.names: dict[str, None] = {}
        self.returns_number = False
        self.notes: list[str] = []
        self._on_training_rows: frozenset[str] = frozenset()

    def callback(self, model: Any) -> Any:
        """Return a callback that records the values of each epoch."""
        return _EpochValueNames(self, model)

    def add(
        self, values: Mapping[str, Any], model: Any, on_training_rows: frozenset[str] = frozenset()
    ) -> None:
        """Record the values of an epoch, or those that were returned.

        Args:
            values: by name.
            model: has been trained.
            on_training_rows: further names of values of the training rows.
        """
        names = list(numbers_of(values))
        self.names.update(dict.fromkeys(names))
        self.notes += [note for note in notes_on(values) if note not in self.notes]
        # A model that was not trained does not know the names of its metrics yet, but another one may.
        self._on_training_rows |= training_names(model)
        if not any(name.startswith("val_") for name in names):
            new = (name for name in names if name not in self._on_training_rows | on_training_rows)
            self.names.update({f"val_{name}": None for name in new})

    def add_returned(self, answer: Any, model: Any) -> None:
        """Record the result of a `fit`.

        Raises:
            CodeFitFailure: it is none that KerasTuner understands.
        """
        self.returns_number |= is_number(answer)
        unnamed = Objective(metric=UNNAMED)
        of_histories = names_in_histories(answer)
        if isinstance(answer, keras.callbacks.History):
            values = {name: values[-1] for name, values in answer.history.items() if values}
            self.add(values, model, of_histories)
        elif values := returned_values(answer, unnamed):
            values.pop(unnamed.metric, None)
            self.add(values, model, of_histories)


class _EpochValueNames(keras.callbacks.Callback):  # type: ignore[misc,unused-ignore]
    """Records the values of each epoch."""

    def __init__(self, measured: Measured, model: Any) -> None:
        super().__init__()
        self._measured, self._trained = measured, model

    def __deepcopy__(self, _: Any) -> "_EpochValueNames":
        return self

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        # A `fit` may train another model than the one that was built.
        self._measured.add(logs or {}, self.model if self.model is not None else self._trained)
