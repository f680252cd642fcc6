"""Defines a model's array functions, which `program.Program` compiles: steps, prediction and metrics.

They call Keras' own `train_step` and `stateless_call`, which are traced once. Everything that changes from
step to step or from trial to trial is an argument: the state, the rows, the batches and the traced
hyperparameters.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import jax
import keras
import numpy as np

from workers.engine.arrays import Array
from workers.engine.compiled.autotune import gathers_before_loop
from workers.engine.compiled.state import Leaves, State
from workers.engine.compiled.traced_hyperparameters import TracedHyperparameter, replaced


class ModelFunctions:
    """One model's functions. Stored programs have the method names in their keys.

    In all of them `state` is the training state, `hyperparameters` has the traced values, (hyperparameters,),
    and `x` and `y` are all rows' features and targets, (rows, …).

    Args:
        model: built and compiled, on one device.
        traced: its hyperparameters that are arguments.
        short_batch: the row count of the last batch in tables of row numbers; None if it is like the others.
    """

    def __init__(
        self, model: Any, traced: Sequence[TracedHyperparameter], *, short_batch: int | None = None
    ) -> None:
        self._model = model
        self._traced = traced
        self._short_batch = short_batch

    def step(self, state: State, hyperparameters: Any, x: Any, y: Any, rows: Any, weights: Any) -> State:
        """Train on one batch: the rows `rows` in x and y with `weights`, both (batch size,)."""
        return self._train(state, x[rows], y[rows], weights, hyperparameters)

    def numbered_step(
        self, state: State, hyperparameters: Any, x: Any, y: Any, weights: Any, number: Any
    ) -> tuple[State, Any]:
        """Train on one of the batches x, y and weights, (batches, batch size, …); return the next number.

        On a mesh each device has its part of every batch, so the batch is chosen without moving rows. The
        number stays on the devices, since a transfer to each of them takes as long as a small step.
        """
        x, y, weights = (
            jax.lax.dynamic_index_in_dim(part, number, keepdims=False) for part in (x, y, weights)
        )
        return self._train(state, x, y, weights, hyperparameters), number + 1

    def steps(
        self,
        state: State,
        hyperparameters: Any,
        x: Any,
        y: Any,
        rows: Any,
        weights: Any,
        first: Any,
        end: Any,
    ) -> State:
        """Train on the batches `first` to `end` - 1 in `rows` and `weights`, both (batches, batch size)."""
        # `first` and `end` are arguments: one program serves any number of steps, and a resume in an epoch.
        if self._short_batch is None:
            train = self._train_function(hyperparameters, x, y, rows, weights)
            return cast("State", jax.lax.fori_loop(first, end, train, state))
        last = len(rows) - 1
        train = self._train_function(hyperparameters, x, y, rows[:last], weights[:last])
        state = jax.lax.fori_loop(first, jax.numpy.minimum(end, last), train, state)
        batch = self.batch_of(rows, last), self.batch_of(weights, last)
        trained: State = jax.lax.cond(
            end > last,
            lambda state: self.step(state, hyperparameters, x, y, *batch),
            lambda state: state,
            state,
        )
        return trained

    def _train_function(
        self, hyperparameters: Any, x: Any, y: Any, rows: Any, weights: Any
    ) -> Callable[[Any, State], State]:
        """Return the function that trains on one of these batches, by its number."""
        if gathers_before_loop(rows.size * (_row_bytes(x) + _row_bytes(y))):
            x_batches, y_batches = x[rows], y[rows]
            return lambda step, state: self._train(
                state, x_batches[step], y_batches[step], weights[step], hyperparameters
            )
        return lambda step, state: self.step(state, hyperparameters, x, y, rows[step], weights[step])

    def epoch(
        self,
        state: State,
        hyperparameters: Any,
        x: Any,
        y: Any,
        rows: Any,
        weights: Any,
        first: Any,
        end: Any,
        *validation: Any,
    ) -> tuple[State, dict[str, Any], Any]:
        """Do `steps`, `metric_results` and, for the validation rows, `validate`."""
        state = self.steps(state, hyperparameters, x, y, rows, weights, first, end)
        return state, self.metric_results(state[3]), self.validate(state, *validation)

    def validate(self, state: State, *validation: Any) -> Any:
        """Return the predictions for the validation rows, (rows, outputs). `validation` is their features."""
        (x,) = validation
        return self.predict(state[0], state[1], x)

    def batch_of(self, table: Array, step: int) -> Array:
        """Return a batch's entries in a table of row numbers or of weights, (batches, batch size)."""
        entries: Array = table[step]
        return entries if step < len(table) - 1 else entries[: self._short_batch]

    def predict(self, trainable: Leaves, other: Leaves, x: Any) -> Any:
        """Return the predictions for all rows in `x`, (rows, outputs), with these variables."""
        outputs, _ = self._model.stateless_call(trainable, other, x.astype("float32"), training=False)
        return outputs

    def metric_results(self, metrics: Leaves) -> dict[str, Any]:
        """Return loss and metrics by name from the metrics' variables."""
        pairs = zip(self._model.metrics_variables, metrics, strict=True)
        with keras.StatelessScope(state_mapping=list(pairs)):
            results: dict[str, Any] = self._model.get_metrics_result()
        return results

    def _train(self, state: State, x: Any, y: Any, weights: Any, hyperparameters: Any) -> State:
        # This runs only while JAX traces the step, so replacing attributes costs nothing later.
        with replaced(self._traced, hyperparameters):
            _, state = self._model.train_step(state, self._batch(x, y, weights))
        return state

    def _batch(self, x: Any, y: Any, weights: Any) -> tuple[Any, ...]:
        """Return a batch as `train_step` takes it."""
        return x.astype("float32"), y, weights


def _row_bytes(rows: Any) -> int:
    return int(np.prod(rows.shape[1:])) * rows.dtype.itemsize
