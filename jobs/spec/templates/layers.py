"""Computes the variables and output shapes of Keras layers without importing Keras."""

import math
from collections.abc import Iterator
from typing import NamedTuple

Shape = tuple[int, ...]
FLOAT32 = 4
"""Bytes in a float32."""


class Variable(NamedTuple):
    """One model variable; layout rules match `path`."""

    path: str
    shape: Shape
    trainable: bool = True

    @property
    def bytes(self) -> int:
        """Return its size in float32, as under most precision policies; see `sizes_of_variables`."""
        return math.prod(self.shape) * FLOAT32


class Layer(NamedTuple):
    """A layer's name, its variables and its output shape for one row.

    Precision overrides match the name, which the built layer has too.
    """

    name: str
    variables: tuple[Variable, ...]
    output: Shape


def dense(name: str, inputs: int, units: int, *, bias: bool = True) -> Layer:
    """Return the dense layer `name`."""
    kernel = Variable(f"{name}/kernel", (inputs, units))
    return Layer(name, (kernel, Variable(f"{name}/bias", (units,))) if bias else (kernel,), (units,))


def embedding_width(size: int) -> int:
    """Return the vector length for `size` indices: 1.6 · size^0.56, at most 50.

    Howard and Gugger, Deep Learning for Coders (2020), chapter 9; fastai's `emb_sz_rule` with another limit.
    """
    return min(50, round(1.6 * math.pow(size, 0.56)))


def layer_normalization(name: str, output: Shape) -> Layer:
    """Return the layer normalization `name` over the last axis."""
    return Layer(name, tuple(Variable(f"{name}/{part}", output[-1:]) for part in ("gamma", "beta")), output)


def batch_normalization(name: str, units: int) -> Layer:
    """Return the batch normalization `name` over the last axis."""
    learned = [Variable(f"{name}/{part}", (units,)) for part in ("gamma", "beta")]
    moving = [Variable(f"{name}/{part}", (units,), False) for part in ("moving_mean", "moving_variance")]
    return Layer(name, (*learned, *moving), (units,))


def without_variables(name: str, output: Shape) -> Layer:
    """Return the layer `name`, which has no variables: an activation, a pooling, a dropout."""
    return Layer(name, (), output)


def dense_block(
    i: int, inputs: int, units: int, *, dropout: float, batch_norm: bool = False
) -> Iterator[Layer]:
    """Yield block `i`: dense, optional batch normalization, activation, optional dropout."""
    yield dense(f"dense_{i}", inputs, units, bias=not batch_norm)
    if batch_norm:
        yield batch_normalization(f"batch_norm_{i}", units)
    # The activation; its output is part of the memory estimate.
    yield without_variables(f"activation_{i}", (units,))
    if dropout:
        yield without_variables(f"dropout_{i}", (units,))
