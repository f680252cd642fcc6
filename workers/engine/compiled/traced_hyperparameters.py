"""Makes hyperparameters arguments to a compiled step instead of constants in it.

Trials that differ only in these share one compiled program. Keras reads most hyperparameters from plain
attributes while a step is traced; here a traced value replaces the attribute during tracing. The learning
rate and the random generators' states already are variables in Keras.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

import jax
import keras

from workers.engine.arrays import Array
from workers.engine.models.keras_private import layers_inside
from workers.engine.models.optimizer import RATE_FACTOR, unwrap_optimizer

TRACED_OPTIMIZER_ARGUMENTS = ("weight_decay", "momentum")
"""Attributes that Keras' update rules use as factors. Where one is 0 or None, some rules leave out a term or
a slot: then it is not traced, but part of the program."""


class _PositiveTracer:
    """Wraps a traced number above 0, so that Python conditions on its sign can be evaluated."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __jax_array__(self) -> Any:
        return self._value

    def __gt__(self, zero: float) -> bool:
        return True

    def __ne__(self, zero: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # it is equal to nothing, so it must not be a key


class TracedHyperparameter(Protocol):
    """A hyperparameter that becomes an argument to the compiled step."""

    def read(self) -> float:
        """Return its current value."""

    def replaced_by(self, value: Any) -> AbstractContextManager[None]:
        """Return a context in which the traced `value` replaces it."""


class TracedAttribute:
    """A factor above 0 that is a regularizer's or an optimizer's attribute."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name

    def read(self) -> float:
        """See `TracedHyperparameter.read`."""
        return float(getattr(self._owner, self._name))

    @contextmanager
    def replaced_by(self, value: Any) -> Iterator[None]:
        """See `TracedHyperparameter.replaced_by`."""
        before = getattr(self._owner, self._name)
        setattr(self._owner, self._name, _PositiveTracer(value))
        try:
            yield
        finally:
            setattr(self._owner, self._name, before)


class TracedKeepProbability:
    """One minus a Dropout layer's rate, if the rate is above 0."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def read(self) -> float:
        """See `TracedHyperparameter.read`."""
        # Subtracted in Python's precision, as Keras does.
        return 1.0 - float(self._layer.rate)

    @contextmanager
    def replaced_by(self, value: Any) -> Iterator[None]:
        """See `TracedHyperparameter.replaced_by`."""

        def call(inputs: Any, training: bool = False) -> Any:
            if not training:
                return inputs
            seed = self._layer.seed_generator.next()
            # A run in float64 drops the same units as one in float32, so that they can be compared.
            mask = jax.random.bernoulli(seed, p=value.astype("float32"), shape=inputs.shape)
            return jax.lax.select(mask, inputs / value.astype(inputs.dtype), jax.numpy.zeros_like(inputs))

        # Keras' own `call` compares the rate with 0 and 1, which fails for a tracer. Writing to `__dict__`
        # avoids the tracking of attributes that Keras does for layers.
        self._layer.__dict__["call"] = call
        try:
            yield
        finally:
            del self._layer.__dict__["call"]


def find_traced_hyperparameters(model: Any) -> tuple[TracedHyperparameter, ...]:
    """Return a compiled model's hyperparameters that can be traced. Equal models have the same order."""
    # By exact type: a layer derived from Dropout, such as SpatialDropout2D, draws another mask.
    layers = [layer for layer in layers_inside(model) if type(layer) is keras.layers.Dropout]
    dropouts = [layer for layer in layers if layer.rate > 0]
    hyperparameters: list[TracedHyperparameter] = [
        TracedKeepProbability(layer) for layer in dropouts if layer.noise_shape is None
    ]
    penalties = (getattr(layer, "kernel_regularizer", None) for layer in model.layers)
    hyperparameters += [
        TracedAttribute(penalty, "l2") for penalty in penalties if isinstance(penalty, keras.regularizers.L2)
    ]
    optimizer = unwrap_optimizer(model.optimizer)
    names = (*TRACED_OPTIMIZER_ARGUMENTS, RATE_FACTOR)
    arguments = (name for name in names if getattr(optimizer, name, None))
    return (*hyperparameters, *(TracedAttribute(optimizer, name) for name in arguments))


@contextmanager
def replaced(hyperparameters: Sequence[TracedHyperparameter], values: Array) -> Iterator[None]:
    """Replace hyperparameters by traced `values`, (hyperparameters,), while a step is traced."""
    with ExitStack() as stack:
        for hyperparameter, value in zip(hyperparameters, values, strict=True):
            stack.enter_context(hyperparameter.replaced_by(value))
        yield
