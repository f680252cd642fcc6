"""Finds layers of user code that take values of the rows as indices, which normalized numbers are not."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import jax
import keras
import numpy as np

from workers.engine.arrays import Array
from workers.engine.errors import CodeBuildFailure
from workers.engine.models import keras_private
from workers.engine.models.code_models.code_build import CodeBuild
from workers.engine.models.own_code.failures import calling

ROWS, SPREAD = 4, 3.0
"""Random rows that a model answers twice, and their standard deviation."""


def layers_of_indices(build: CodeBuild) -> tuple[str, ...]:
    """Return the names of the Embedding layers whose indices depend on the rows.

    Positions of steps, which an Embedding may take too, are the same for all rows.

    Raises:
        CodeBuildFailure: the model cannot be called.
    """
    inside = keras_private.layers_inside(build.code_model)
    layers = [layer for layer in inside if isinstance(layer, keras.layers.Embedding)]
    if not layers:
        return ()
    generator = np.random.default_rng(0)
    taken: list[dict[int, list[Array]]] = []
    for _ in range(2):
        rows = generator.normal(scale=SPREAD, size=(ROWS, *build.shape.input_shape)).astype(np.float32)
        raw = rows if build.scaling is None else build.scaling.raw(rows)
        with calling(CodeBuildFailure, "calling the model"), _following(layers) as indices:
            build.model(raw if build.preprocess is None else build.preprocess(raw))
        taken.append(indices)
    first, second = taken
    return tuple(
        layer.name for layer in layers if not _are_same(first.get(id(layer), []), second.get(id(layer), []))
    )


@contextmanager
def _following(layers: list[Any]) -> Iterator[dict[int, list[Array]]]:
    """Record what layers are called with, by their ids, inside the context."""
    indices: dict[int, list[Array]] = {}

    def followed(layer: Any) -> Callable[..., Any]:
        call = layer.call

        def record(inputs: Any, *args: Any, **kwargs: Any) -> Any:
            # A loop of the code is traced; the values in it are not known.
            if not isinstance(inputs, jax.core.Tracer):
                indices.setdefault(id(layer), []).append(np.asarray(inputs))
            return call(inputs, *args, **kwargs)

        return record

    for layer in layers:
        layer.call = followed(layer)
    try:
        yield indices
    finally:
        for layer in layers:
            del layer.call


def _are_same(first: list[Array], second: list[Array]) -> bool:
    return len(first) == len(second) and all(map(np.array_equal, first, second))
