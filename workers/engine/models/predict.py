"""Prediction by a pure, compiled function of the weights and a batch of one fixed shape."""

from typing import Any

import jax
import numpy as np

from workers.engine.data.table import Array

ROWS = 1024


class Predictor:
    """Calls a model with one input and one output; compiles once for each batch size asked for."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._dtype = model.inputs[0].dtype
        trainable = [variable.value for variable in model.trainable_variables]
        fixed = [variable.value for variable in model.non_trainable_variables]
        self._weights = (trainable, fixed)
        self._compiled = jax.jit(self._call)

    def _call(self, weights: tuple[Any, Any], x: Any) -> Any:
        outputs, _ = self._model.stateless_call(*weights, x, training=False)
        return outputs

    def batch(self, x: Array) -> Array:
        """Return the predictions for exactly these rows, computed as one batch of their number."""
        return np.asarray(self._compiled(self._weights, x.astype(self._dtype, copy=False)))

    def __call__(self, x: Array, rows: int = ROWS) -> Array:
        """Return the predictions for all rows of `x`, in batches of `rows` filled up with zeros."""
        size = min(rows, len(x))
        parts = [self.padded(x[start : start + size], size) for start in range(0, len(x), size)]
        return np.concatenate(parts)

    def padded(self, x: Array, size: int) -> Array:
        """Return the predictions for `x`, computed inside a batch of `size` rows."""
        lacking = size - len(x)
        if lacking <= 0:
            return self.batch(x)
        filled = np.concatenate([x, np.zeros((lacking, *x.shape[1:]), x.dtype)])
        return self.batch(filled)[: len(x)]
