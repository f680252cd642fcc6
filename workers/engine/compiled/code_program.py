"""Compiles the functions of a model that user code compiles, with the same batches as in Keras' `fit`.

The code's loss and metrics may be any function of a batch. So they get no weights unless the rows have some,
an epoch's last batch has only its own rows, and validation is Keras' `test_step` on batches of the same size.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.arrays import Array
from workers.engine.compiled.device_feed import stays_on_device
from workers.engine.compiled.model_functions import ModelFunctions
from workers.engine.compiled.placement import MeshPlacement
from workers.engine.compiled.program import Program
from workers.engine.compiled.state import Leaves, State
from workers.engine.compiled.traced_hyperparameters import TracedHyperparameter
from workers.engine.data.batches import Batches
from workers.engine.evaluation.metric_results import numbers_of
from workers.engine.models import keras_private


class CodeFunctions(ModelFunctions):
    """A compiled model's functions; see `ModelFunctions`.

    Args:
        model: built and compiled; its metrics are built and reset.
        traced: its hyperparameters that are arguments.
        size: rows in a batch.
        short_batch: the row count of an epoch's last batch if the tables of row numbers fill it.
        is_weighted: whether the training rows have weights.
        divide: divides a batch among the devices of a mesh, in a compiled function.
    """

    def __init__(
        self,
        model: Any,
        traced: Sequence[TracedHyperparameter],
        *,
        size: int,
        short_batch: int | None,
        is_weighted: bool,
        divide: Callable[[Any], Any],
    ) -> None:
        super().__init__(model, traced, short_batch=short_batch)
        self._size, self._is_weighted, self._divide = size, is_weighted, divide
        self._initial_metrics = [np.array(variable.value) for variable in model.metrics_variables]

    def validate(self, state: State, *validation: Any) -> Any:
        """Return loss and metrics by name for the validation rows; their weights may be left out."""
        return self.metric_results(self.test(state[0], state[1], self._initial_metrics, *validation))

    def test(
        self, trainable: Leaves, other: Leaves, metrics: Leaves, x: Any, y: Any, weights: Any = None
    ) -> Leaves:
        """Return the metrics' variables after Keras' `test_step` on all rows, batch by batch."""

        def test_batch(metrics: Leaves, x: Any, *batch: Any) -> Leaves:
            data = (x.astype("float32"), *batch)
            _, (_, _, after) = self._model.test_step((trainable, other, metrics), data)
            return list(after)

        return self._in_batches(test_batch, metrics, x, y, weights)

    def score(self, y: Any, predictions: Any, weights: Any = None) -> dict[str, Any]:
        """Return loss and metrics by name for predictions. The loss has no penalties."""
        model = self._model

        def add_batch(metrics: Leaves, y: Any, predictions: Any, weights: Any = None) -> Leaves:
            pairs = list(zip(model.metrics_variables, metrics, strict=True))
            with keras.StatelessScope(state_mapping=pairs) as scope:
                loss = keras_private.compiled_loss(model)(y, predictions, weights)
                keras_private.loss_tracker(model).update_state(loss, sample_weight=len(y))
                model.compute_metrics(None, y, predictions, weights)
            values = ((scope.get_current_value(variable), before) for variable, before in pairs)
            return [before if value is None else value for value, before in values]

        return self.metric_results(
            self._in_batches(add_batch, self._initial_metrics, y, predictions, weights)
        )

    def _in_batches(self, update: Callable[..., Leaves], metrics: Leaves, *rows: Any) -> Leaves:
        """Return the metrics' variables after `update` with each batch of these rows; None is left out."""
        arrays = [jax.numpy.asarray(part) for part in rows if part is not None]
        count, size = len(arrays[0]), self._size

        def update_with(step: Any, metrics: Leaves) -> Leaves:
            batch = (jax.lax.dynamic_slice_in_dim(part, step * size, size) for part in arrays)
            return update(metrics, *map(self._divide, batch))

        if batches := count // size:
            metrics = jax.lax.fori_loop(0, batches, update_with, list(map(jax.numpy.asarray, metrics)))
        if rest := count % size:
            metrics = update(metrics, *(self._divide(part[count - rest :]) for part in arrays))
        return metrics

    def _batch(self, x: Any, y: Any, weights: Any) -> tuple[Any, ...]:
        return super()._batch(x, y, weights)[: 3 if self._is_weighted else 2]


class CodeProgram(Program):
    """A compiled model's functions; see `Program`.

    Args:
        model: built and compiled.
        batches: the training data; the last batch is not filled.
        key: equal for models that can share these functions.
        placement: where its arrays are on a mesh; None for one device.
    """

    def __init__(
        self, model: Any, batches: Batches, key: str, placement: MeshPlacement | None = None
    ) -> None:
        batch = next(batches.draw(1))
        divide = (lambda rows: rows) if placement is None else placement.divided
        make_functions = partial(
            CodeFunctions,
            size=batches.size,
            # In a block of rows that is sent to the devices, no batch is filled.
            short_batch=batches.short_batch if placement is None and stays_on_device(batches) else None,
            is_weighted=batches.is_weighted,
            divide=divide,
        )
        super().__init__(model, batch if batches.is_weighted else batch[:2], key, make_functions, placement)
        self._batch_size = batches.size
        functions = self._functions
        if not isinstance(functions, CodeFunctions):
            raise TypeError("the functions of another model")
        # Its results are its arguments for the next rows.
        self._test = self._compile(functions.test, results=self.initial_metrics())
        self._score = self._compile(functions.score)

    def test(self, state: State, *rows: Any, rows_at_once: int) -> dict[str, float]:
        """Return loss and metrics by name, as Keras' `evaluate` computes them.

        Args:
            state: the training's.
            rows: features, targets and, if they have some, weights.
            rows_at_once: about how many rows one call gets.
        """
        length = max(rows_at_once // self._batch_size, 1) * self._batch_size
        metrics: Any = self.initial_metrics()
        for start in range(0, len(rows[0]), length):
            block: Any = [part[start : start + length] for part in rows]
            if self.placement is not None:
                block = self.placement.whole(block)
            metrics = self._test(state[0], state[1], metrics, *block)
        return numbers_of(self._logs(metrics))

    def score(self, y: Array, predictions: Array, weights: Array | None) -> dict[str, float]:
        """Return loss and metrics by name for predictions on some rows."""
        return numbers_of(self._score(y, predictions, *(() if weights is None else (weights,))))
