"""Keeps a model's programs, one for each bucket (number of rows) and sizes in a row, and runs them."""

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from workers.model_process.dtypes import computed_dtype
from workers.serving.child.model import PureModel
from workers.serving.child.program import Program, check_memory, compile_program
from workers.serving.child.sizes import Sizes

Array = npt.NDArray[Any]
Key = tuple[int, Sizes]


def buckets(largest: int, *, power: int = 1) -> list[int]:
    """Return the powers of 2 (of 4 with `power` 2) from 1 to below `largest`, and `largest`."""
    return [1 << exponent for exponent in range(0, largest.bit_length() - 1, power)] + [largest]


class Programs:
    """Runs a model on any number of rows up to the largest bucket.

    All programs for a model with fixed sizes are compiled before it serves. Otherwise each row size needs
    its own programs: those for seen sizes are compiled ahead, any other when a request needs it, and only
    the `limit` most recently used ones are kept. Several threads may compile; one runs.

    Attributes:
        has_open_sizes: whether the signature leaves sizes open.
        is_busy: whether a batch is running.
    """

    def __init__(self, model: PureModel, max_batch: int, limit: int) -> None:
        self.model = model
        self.has_open_sizes = any(None in spec.shape for spec in model.signature.inputs)
        # With open sizes, fewer programs are worth more padding.
        self.buckets = buckets(max_batch, power=2 if self.has_open_sizes else 1)
        self.is_busy = False
        self._limit = limit
        self._jitted = jax.jit(model.apply)
        self._compiled: OrderedDict[Key, Program] = OrderedDict()
        self._has_run: set[Key] = set()
        self._changing = threading.Lock()

    def warm(self) -> float:
        """Compile and run every bucket for a model with fixed sizes; return the slowest run's seconds.

        Raises:
            ValueError: an output lacks the batch dimension, so its rows could not be separated.
        """
        inputs, slowest = self.model.signature.inputs, 0.0
        sizes = tuple(tuple(size for size in spec.shape if size is not None) for spec in inputs)
        for bucket in self.buckets:
            program = self.compile((bucket, sizes))
            input_bytes = sum(
                bucket * math.prod(shape) * np.dtype(computed_dtype(spec.dtype)).itemsize
                for shape, spec in zip(sizes, inputs, strict=True)
            )
            check_memory(program, input_bytes=input_bytes)
            zeros: list[Array] = [
                np.zeros((bucket, *spec.shape), computed_dtype(spec.dtype)) for spec in inputs
            ]
            began = time.monotonic()
            for output, spec in zip(self.run(zeros), self.model.signature.outputs, strict=True):
                if output.ndim == 0 or len(output) != bucket:
                    raise ValueError(f"output {spec.name!r} has shape {output.shape} for {bucket} rows")
            slowest = max(slowest, time.monotonic() - began)
        return slowest

    def run(self, inputs: Sequence[Array], is_new: Callable[[], None] = lambda: None) -> list[Array]:
        """Return the outputs for these rows.

        Args:
            inputs: arrays [rows, …] in the signature's order, all with equally many rows.
            is_new: called before a program is compiled, or runs for the first time: it may take long.

        Raises:
            ShapesRefused: the model cannot compute inputs with these shapes.
            OutOfMemory: there is too little free memory.
        """
        self.is_busy = True
        try:
            return self._run(inputs, is_new)
        finally:
            self.is_busy = False

    def _run(self, inputs: Sequence[Array], is_new: Callable[[], None]) -> list[Array]:
        rows, sizes = len(inputs[0]), tuple(array.shape[1:] for array in inputs)
        bucket = self._bucket(rows, sizes)
        if (bucket, sizes) not in self._has_run:
            is_new()
        program = self.compile((bucket, sizes))
        check_memory(program)
        if rows <= bucket:
            outputs = self._call(program, inputs, bucket)
        else:
            starts = range(0, rows, bucket)
            parts = [
                self._call(program, [array[start : start + bucket] for array in inputs], bucket)
                for start in starts
            ]
            outputs = [np.concatenate(slices) for slices in zip(*parts, strict=True)]
        self._has_run.add((bucket, sizes))
        return outputs

    def _bucket(self, rows: int, sizes: Sizes) -> int:
        """Return the bucket to run rows with.

        This is the smallest that holds them all. If it is not compiled, but another one is, that one: padding
        more, or running several times, takes less time than compiling.
        """
        smallest = next(size for size in self.buckets if size >= rows)
        if (smallest, sizes) in self._compiled:
            return smallest
        ready = [size for size in self.buckets if (size, sizes) in self._compiled]
        return next((size for size in ready if size > rows), ready[-1] if ready else smallest)

    def _call(self, program: Program, inputs: Sequence[Array], bucket: int) -> list[Array]:
        rows = len(inputs[0])
        padded = inputs if rows == bucket else [_pad(array, bucket) for array in inputs]
        # XLA ends the process if NumPy reads an output whose allocation failed; waiting raises an exception.
        outputs = jax.block_until_ready(program.run(self.model.weights, padded))
        return [np.asarray(output)[:rows] for output in outputs]

    def is_full(self) -> bool:
        """Return whether another program would replace one."""
        return len(self._compiled) >= self._limit

    def has(self, key: Key) -> bool:
        """Return whether a program is compiled."""
        return key in self._compiled

    def compile(self, key: Key) -> Program:
        """Return the program for a bucket and sizes; compile it unless it is kept.

        Raises:
            ShapesRefused: the model cannot compute these sizes.
        """
        with self._changing:
            program = self._compiled.get(key)
            if program is not None:
                self._compiled.move_to_end(key)
                return program
        # Without the lock: a batch with another program must not wait for it.
        bucket, sizes = key
        program = compile_program(self.model, self._jitted, [(bucket, *shape) for shape in sizes])
        with self._changing:
            self._compiled[key] = program
            if len(self._compiled) > self._limit:
                removed, _ = self._compiled.popitem(last=False)
                self._has_run.discard(removed)
        return program


def _pad(array: Array, bucket: int) -> Array:
    padded = np.zeros((bucket, *array.shape[1:]), array.dtype)
    padded[: len(array)] = array
    return padded
