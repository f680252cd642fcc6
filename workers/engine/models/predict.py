"""Predicts with a compiled function that takes the weights and a batch with a fixed shape."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.rows import Rows
from workers.engine.models.graph import graph_of
from workers.engine.phases import Repeated

BATCH_SIZE = 1024


def arranged(model: Any, inputs: Sequence[Any]) -> Any:
    """Return arrays, ordered as in `model.inputs`, as the model takes them: one, a list or a dictionary."""
    graph = graph_of(model)
    return keras.tree.pack_sequence_as(graph.input, list(inputs))


class Batched(ABC):
    """Predicts with a model that has one input and one output, one batch after another."""

    @abstractmethod
    def batch(self, x: Array) -> Array:
        """Return the predictions for these rows, computed as one batch with exactly this size."""

    def padded(self, x: Array, size: int) -> Array:
        """Return the predictions for `x`, computed in a batch padded to `size` rows."""
        missing = size - len(x)
        if missing <= 0:
            return self.batch(x)
        filled = np.concatenate([x, np.zeros((missing, *x.shape[1:]), x.dtype)])
        return self.batch(filled)[: len(x)]


class Predictor(Batched):
    """Predicts in this process; compiles once for each batch size."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._dtype = model.inputs[0].dtype
        trainable = [variable.value for variable in model.trainable_variables]
        fixed = [variable.value for variable in model.non_trainable_variables]
        # Passed as arguments: XLA would copy values that the function closes over into the program.
        self._weights = (trainable, fixed)
        self._compiled = jax.jit(self._call)

    def _call(self, weights: tuple[Any, Any], x: Any) -> Any:
        outputs, _ = self._model.stateless_call(*weights, arranged(self._model, [x]), training=False)
        # A dictionary or list of one output is as good as the output.
        return keras.tree.flatten(outputs)[0]

    def batch(self, x: Array) -> Array:
        """See `Batched.batch`."""
        return np.asarray(self._compiled(self._weights, x.astype(self._dtype, copy=False)))

    def __call__(self, x: Rows, batch_size: int = BATCH_SIZE) -> Array:
        """Return the predictions for all rows in `x`, in batches padded with zeros."""
        # Every batch has the same size, since each size is compiled separately.
        size = min(batch_size, len(x))
        announce, parts = Repeated("evaluating"), []
        for start in range(0, len(x), size):
            announce()
            parts.append(self.padded(x[start : start + size], size))
        return np.concatenate(parts)
