"""Numbers of a model that are arguments of its compiled step, not constants in it.

Trials that differ in nothing else share one compiled program. Keras reads most hyperparameters from plain
attributes while a step is traced; here a traced value takes the attribute's place meanwhile. The learning
rate and the states of random generators are variables in Keras already and need none of this.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

import jax
import keras

from workers.engine.data.table import Array

OF_OPTIMIZERS = ("weight_decay", "momentum")
"""Attributes that the update rules of Keras' optimizers use as factors. Where one is 0 or None, some leave
a term or a slot out: then it is no dial, but part of what the program is."""


class _Positive:
    """A traced number that is known to be above 0: rules that ask whether it is get an answer."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __jax_array__(self) -> Any:
        return self._value

    def __gt__(self, zero: float) -> bool:
        return True

    def __ne__(self, zero: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # equal to nothing: it has no place in a set


class Dial(Protocol):
    """One such number."""

    def read(self) -> float:
        """Return what it stands at."""

    def standing_at(self, value: Any) -> AbstractContextManager[None]:
        """Let a traced `value` take its place."""


class Attribute:
    """A factor above 0 that is read from an attribute: of a regularizer, of an optimizer."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name

    def read(self) -> float:
        """See `Dial.read`."""
        return float(getattr(self._owner, self._name))

    @contextmanager
    def standing_at(self, value: Any) -> Iterator[None]:
        """See `Dial.standing_at`."""
        before = getattr(self._owner, self._name)
        setattr(self._owner, self._name, _Positive(value))
        try:
            yield
        finally:
            setattr(self._owner, self._name, before)


class Kept:
    """The share of its inputs that a Dropout layer lets through; its rate is above 0."""

    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def read(self) -> float:
        """See `Dial.read`. One minus the rate in Python's precision, as Keras computes it."""
        return 1.0 - float(self._layer.rate)

    @contextmanager
    def standing_at(self, value: Any) -> Iterator[None]:
        """See `Dial.standing_at`. Keras asks whether the rate is 0 or 1, which a traced one cannot answer."""

        def call(inputs: Any, training: bool = False) -> Any:
            if not training:
                return inputs
            seed = self._layer.seed_generator.next()
            mask = jax.random.bernoulli(seed, p=value, shape=inputs.shape)
            return jax.lax.select(mask, inputs / value.astype(inputs.dtype), jax.numpy.zeros_like(inputs))

        self._layer.__dict__["call"] = call
        try:
            yield
        finally:
            del self._layer.__dict__["call"]


def dials_of(model: Any) -> tuple[Dial, ...]:
    """Return every dial of a compiled model, in an order that equal models share."""
    # by type: a layer derived from Dropout, such as SpatialDropout2D, draws otherwise
    layers = [layer for layer in model._flatten_layers() if type(layer) is keras.layers.Dropout]
    dropouts = [layer for layer in layers if layer.rate > 0]
    found: list[Dial] = [Kept(layer) for layer in dropouts if layer.noise_shape is None]
    penalties = (getattr(layer, "kernel_regularizer", None) for layer in model.layers)
    found += [Attribute(each, "l2") for each in penalties if isinstance(each, keras.regularizers.L2)]
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    return (*found, *(Attribute(optimizer, name) for name in OF_OPTIMIZERS if getattr(optimizer, name, None)))


@contextmanager
def turned(dials: Sequence[Dial], values: Array) -> Iterator[None]:
    """Let traced `values`, (dials,), take the dials' places while a step is traced."""
    with ExitStack() as stack:
        for dial, value in zip(dials, values, strict=True):
            stack.enter_context(dial.standing_at(value))
        yield
