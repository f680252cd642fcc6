"""The values that the variables of a model start from, as a function of a seed.

A model is assembled while Keras puts the initialization of its variables off. Then each random initializer
and each random generator gets a seed derived from the run's seed and the name of its layer. So equal runs
start equal in any process, however warm, and a model that is kept for another run starts exactly as one that
is built for it.

Glorot's uniform distribution is drawn on the host. Keras draws it on the device with a program for each
shape, and XLA takes 0.7 s of CPU to compile one: more than a small model's whole training.
"""

import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import keras
import numpy as np

from workers.engine.data.table import Array
from workers.engine.models.width_padding import Widths, padded

Shape = tuple[int, ...]


class Source(NamedTuple):
    """A variable that starts at random.

    Attributes:
        variable: of Keras.
        name: what its seed is derived from, beside the run's.
        draw: from a seed and a shape to its first value.
    """

    variable: Any
    name: str
    draw: Callable[[int, Shape], Any]


class InitialValues:
    """Of a model whose variables are not yet initialized.

    Attributes:
        fixed: the variables that start alike for every seed.
        sources: those that start at random.
        complete: whether every variable is among these. Of a model of which one is not, nobody can say how it
            would start from another seed.
    """

    def __init__(self, layers: list[Any]) -> None:
        """Read the initializers of all variables of these layers, which must still be uninitialized."""
        self.fixed: list[Any] = []
        self.sources: list[Source] = []
        self.complete = True
        for layer in layers:
            names = _names(layer.name)
            for variable in layer.variables:
                self._add(variable, names)

    def _add(self, variable: Any, names: Iterator[str]) -> None:
        initializer = variable._initializer
        if variable.name == "seed_generator_state":
            self.sources.append(Source(variable, next(names), _generator_state))
        elif seeded := _seeded_parts(initializer):
            self.sources.append(Source(variable, next(names), _Draw(initializer, seeded, variable.dtype)))
        elif _is_of_keras(initializer):
            self.fixed.append(variable)
        else:
            self.complete = False

    def set_up(self, seed: int) -> None:
        """Let Keras initialize the variables with this seed, once it leaves the stateless scope."""
        for source in self.sources:
            source.variable._initializer = _Later(source, _seed(seed, source.name))

    def redraw(self, seed: int, widths: Widths) -> None:
        """Give every random variable the value that a new model with this seed would start from.

        Args:
            seed: of the run.
            widths: the shapes that are meant where the model is wider; the surplus becomes 0.
        """
        for variable, name, draw in self.sources:
            start = np.asarray(draw(_seed(seed, name), widths.shape_of(variable)))
            variable.assign(padded(start, variable.shape))


class _Draw:
    """Calls an initializer, or a function of Keras around some, after seeding it."""

    def __init__(self, initializer: Any, seeded: list[Any], dtype: str) -> None:
        self._initializer = initializer
        self._seeded = seeded
        self._dtype = dtype

    def __call__(self, seed: int, shape: Shape) -> Any:
        if type(self._initializer) is keras.initializers.GlorotUniform:
            return glorot_uniform(seed, shape).astype(self._dtype)
        for part in self._seeded:
            part.seed = seed
        return self._initializer(shape, dtype=self._dtype)


class _Later:
    """An initializer in the form that Keras calls."""

    def __init__(self, source: Source, seed: int) -> None:
        self._source = source
        self._seed = seed

    def __call__(self, shape: Shape, dtype: Any = None) -> Any:
        return keras.ops.convert_to_tensor(self._source.draw(self._seed, shape), dtype=dtype)


def _names(layer: str) -> Iterator[str]:
    """Name the random variables of a layer: its name, then its name with a count."""
    yield layer
    count = 0
    while True:
        count += 1
        yield f"{layer}/{count}"


def _seed(seed: int, name: str) -> int:
    return zlib.crc32(f"{seed}/{name}".encode())


def _generator_state(seed: int, shape: Shape) -> Array:  # noqa: ARG001  it is always (2,)
    return np.array([seed, 0], dtype=np.uint32)


def _seeded_parts(initializer: Any) -> list[Any]:
    """List the random initializers in one: itself, or those of the layer that a function closes over."""
    if isinstance(initializer, keras.initializers.Initializer):
        return [initializer] if hasattr(initializer, "seed") else []
    owners = [cell.cell_contents for cell in getattr(initializer, "__closure__", None) or ()]
    parts = [part for owner in owners if isinstance(owner, keras.Layer) for part in vars(owner).values()]
    return [p for p in parts if isinstance(p, keras.initializers.Initializer) and hasattr(p, "seed")]


def _is_of_keras(initializer: Any) -> bool:
    is_initializer = isinstance(initializer, keras.initializers.Initializer)
    module = type(initializer).__module__ if is_initializer else getattr(initializer, "__module__", "")
    return module.startswith("keras.")


def glorot_uniform(seed: int, shape: Shape) -> Array:
    """Return uniform numbers within ±sqrt(6 / (inputs + outputs)), float32.

    Args:
        seed: below 2³².
        shape: of a kernel, inputs and outputs last; for convolutions these count once for each place of the
            window.

    Source: Glorot and Bengio 2010, Understanding the difficulty of training deep feedforward neural networks,
    equation 16.
    """
    inputs, outputs = shape[-2:] if len(shape) > 1 else (math.prod(shape), math.prod(shape))
    limit = math.sqrt(6 / (math.prod(shape[:-2]) * (inputs + outputs)))
    uniform = np.random.Generator(np.random.Philox(seed)).random(shape, dtype=np.float32)
    return (2 * uniform - 1) * np.float32(limit)
