"""Computes the initial values for a model's variables from a seed.

A model is assembled while Keras defers initializing its variables. Then each random initializer and
each random generator gets a seed derived from the run's seed and its layer's name. So equal runs start
from equal values in any process, and a cached model starts from the same values as a new one.
"""

import zlib
from collections.abc import Callable, Container, Iterator
from typing import Any, NamedTuple

import jax
import keras
import numpy as np

from workers.engine.arrays import Array
from workers.engine.models import host_values
from workers.engine.models.keras_origin import is_keras_module
from workers.engine.models.variables import placed
from workers.engine.models.width_padding import Widths, padded

Shape = tuple[int, ...]
host_values.install()


class Source(NamedTuple):
    """A variable with a random initial value.

    Attributes:
        variable: a Keras variable.
        name: its seed is derived from this name and the run's seed.
        draw: returns the initial value for a seed and a shape.
    """

    variable: Any
    name: str
    draw: Callable[[int, Shape], Any]


class InitialValues:
    """The initial values for the variables in a model that is not initialized yet.

    Attributes:
        fixed: variables whose initial value does not depend on the seed.
        sources: variables with a random initial value.
        complete: whether these are all variables. If not, the initial values for another seed are unknown.
    """

    def __init__(self, layers: list[Any], stored: Container[int] = ()) -> None:
        """Read the initializers for all variables in these layers.

        Args:
            layers: the model's layers. The variables are not initialized yet, or `redraw` follows.
            stored: ids for the variables whose initial values come from a file, and are fixed.
        """
        self._stored = stored
        self.fixed: list[Any] = []
        self.sources: list[Source] = []
        self.complete = True
        for layer in layers:
            names = _names(layer.name)
            for variable in layer.variables:
                self._add(variable, names)

    def _add(self, variable: Any, names: Iterator[str]) -> None:
        initializer = variable._initializer  # Keras keeps it here, privately, until it calls it
        if variable.name == "seed_generator_state":
            self.sources.append(Source(variable, next(names), _generator_state))
        elif id(variable) in self._stored:
            self.fixed.append(variable)
        elif seeded := _seeded_parts(initializer):
            self.sources.append(Source(variable, next(names), _Draw(initializer, seeded, variable.dtype)))
        # Others may draw random numbers without a `seed`. It may be any function, also a method.
        elif is_keras_module(getattr(initializer, "__module__", None)):
            self.fixed.append(variable)
        else:
            self.complete = False

    def set_up(self, seed: int) -> None:
        """Make Keras initialize the variables with this seed when the stateless scope ends."""
        for source in self.sources:
            source.variable._initializer = _DeferredInitializer(source, _seed(seed, source.name))

    def redraw(self, seed: int, widths: Widths) -> None:
        """Assign to every random variable the initial value that a new model with this seed has.

        Args:
            seed: the run's seed.
            widths: the requested shapes, if the model is wider; additional values become 0.
        """
        for variable, name, draw in self.sources:
            # Drawn also while a build without values is traced.
            with jax.ensure_compile_time_eval():
                start = np.asarray(draw(_seed(seed, name), widths.shape_of(variable)))
            variable.assign(placed(variable, padded(start, variable.shape)))


class _Draw:
    """Seeds and calls an initializer, or a Keras function that contains some."""

    def __init__(self, initializer: Any, seeded: list[Any], dtype: str) -> None:
        self._initializer = initializer
        self._seeded = seeded
        self._dtype = dtype

    def __call__(self, seed: int, shape: Shape) -> Any:
        for part in self._seeded:
            part.seed = seed
        return self._initializer(shape, dtype=self._dtype)


class _DeferredInitializer:
    """An initializer that draws from a source; Keras calls it."""

    is_drawn_on_host = True

    def __init__(self, source: Source, seed: int) -> None:
        self._source = source
        self._seed = seed

    def __call__(self, shape: Shape, dtype: Any = None) -> Any:
        drawn = self._source.draw(self._seed, shape)
        if isinstance(drawn, np.ndarray) and keras.distribution.distribution() is not None:
            return drawn.astype(keras.backend.standardize_dtype(dtype))
        return keras.ops.convert_to_tensor(drawn, dtype=dtype)


def _names(layer: str) -> Iterator[str]:
    """Yield names for a layer's random variables: its name, then its name with a number."""
    yield layer
    count = 0
    while True:
        count += 1
        yield f"{layer}/{count}"


def _seed(seed: int, name: str) -> int:
    # Not `hash`, which differs between processes.
    return zlib.crc32(f"{seed}/{name}".encode())


def _generator_state(seed: int, shape: Shape) -> Array:  # noqa: ARG001  it is always (2,)
    return np.array([seed, 0], dtype=np.uint32)


def _seeded_parts(initializer: Any) -> list[Any]:
    """Return the random initializers in one: itself, or those in the layers that a function closes over."""
    if isinstance(initializer, keras.initializers.Initializer):
        return [initializer] if hasattr(initializer, "seed") else []
    # An LSTM cell initializes its bias by a nested function, which calls the initializers of the cell.
    owners = [cell.cell_contents for cell in getattr(initializer, "__closure__", None) or ()]
    parts = [part for owner in owners if isinstance(owner, keras.Layer) for part in vars(owner).values()]
    return [p for p in parts if isinstance(p, keras.initializers.Initializer) and hasattr(p, "seed")]
