"""Compiles a model for batch sizes of powers of two (buckets) and runs it."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from workers.serving.child.model import PureModel

Array = npt.NDArray[Any]
_MAX_PROGRAMS = 64


def buckets(largest: int) -> list[int]:
    """Return 1, 2, 4 … up to `largest`."""
    return [1 << power for power in range(largest.bit_length())]


class Programs:
    """Runs a model on any number of rows up to the largest bucket.

    Programs are compiled ahead of time if all dimensions but the batch are known, else on first use; then
    only the most recently used ones are kept.
    """

    def __init__(self, model: PureModel, max_batch: int) -> None:
        self.model = model
        self.buckets = buckets(max_batch)
        self._jitted = jax.jit(model.apply)
        self._compiled: OrderedDict[tuple[tuple[int, ...], ...], Any] = OrderedDict()

    def warm(self) -> None:
        """Compile and run every bucket once.

        Raises:
            ValueError: an output lacks the batch dimension, so its rows could not be separated.
        """
        inputs = self.model.signature.inputs
        if any(None in spec.shape for spec in inputs):
            return
        for bucket in self.buckets:
            zeros: list[Array] = [np.zeros((bucket, *spec.shape), spec.dtype) for spec in inputs]
            for output, spec in zip(self.run(zeros), self.model.signature.outputs, strict=True):
                if output.ndim == 0 or len(output) != bucket:
                    raise ValueError(f"output {spec.name!r} has shape {output.shape} for {bucket} rows")

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Return the outputs for these rows.

        Args:
            inputs: arrays [rows, …] in the signature's order, all with the same number of rows.
        """
        rows = len(inputs[0])
        bucket = next(size for size in self.buckets if size >= rows)
        padded = inputs if rows == bucket else [_pad(array, bucket) for array in inputs]
        outputs = self._program(padded)(self.model.weights, padded)
        return [np.asarray(output)[:rows] for output in outputs]

    def _program(self, inputs: Sequence[Array]) -> Any:
        key = tuple(array.shape for array in inputs)
        program = self._compiled.get(key)
        if program is None:
            shapes = [jax.ShapeDtypeStruct(array.shape, array.dtype) for array in inputs]
            program = self._compiled[key] = self._jitted.lower(self.model.weights, shapes).compile()
            if len(self._compiled) > _MAX_PROGRAMS:
                self._compiled.popitem(last=False)
        else:
            self._compiled.move_to_end(key)
        return program


def _pad(array: Array, bucket: int) -> Array:
    padded = np.zeros((bucket, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded
