"""Batches in an order that depends on (seed, epoch) alone, all of one shape.

The last batch of an epoch is filled up with rows of weight 0, so one compiled step serves every
batch, any number of devices divides it, and every row is used once an epoch. With the loss averaged
over the weights (`mean_with_sample_weight`) the gradient equals that of the short batch.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from workers.engine.data.table import Array

Batch = tuple[Array, Array, Array]


@dataclass(frozen=True)
class Batches:
    """The training rows, ready to be drawn epoch by epoch.

    Attributes:
        x: (rows, …) features; y: (rows, …) targets; weights: (rows,) float32.
        size: rows a batch; a multiple of the number of devices that share it.
    """

    x: Array
    y: Array
    weights: Array
    size: int
    seed: int
    shuffle: bool

    @property
    def steps(self) -> int:
        """Return the number of batches an epoch."""
        return math.ceil(len(self.x) / self.size)

    def order(self, epoch: int) -> Array:
        """Return the rows of `epoch` (counted from 1) in the order in which they are used."""
        rows = np.arange(len(self.x))
        return np.random.default_rng((self.seed, epoch)).permutation(rows) if self.shuffle else rows

    def table(self, epoch: int) -> tuple[Array, Array]:
        """Return which rows make the batches of `epoch`, and their weights; both (steps, size).

        The last batch is filled up with its own rows, not with invented ones: batch normalization sees them.
        """
        order = self.order(epoch)
        lacking = self.steps * self.size - len(order)
        last = order[(self.steps - 1) * self.size :]
        rows = np.concatenate([order, np.resize(last, lacking)]) if lacking else order
        weights = self.weights[rows]
        weights[len(order) :] = 0.0
        shape = (self.steps, self.size)
        return rows.astype(np.int32).reshape(shape), weights.reshape(shape)

    def draw(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches of `epoch` from batch number `first` (from 0) on."""
        for rows, weights in zip(*(part[first:] for part in self.table(epoch)), strict=True):
            yield self.x[rows].astype(np.float32, copy=False), self.y[rows], weights


def batch_size_for(wanted: int, rows: int, shards: int) -> int:
    """Return the batch size to use: not far above the rows there are, divisible by `shards`."""
    return min(wanted, math.ceil(rows / shards) * shards)


def row_weights(
    y: Array, classes: int, rule: str | dict[str, float] | None, labels: tuple[str, ...]
) -> Array:
    """Return one weight a row: 1, or the weight of its class.

    "balanced" gives each class the same total weight: rows / (classes · rows of the class).
    """
    if rule is None:
        return np.ones(len(y), dtype=np.float32)
    if isinstance(rule, str):
        counts = np.bincount(y, minlength=classes)
        of_class = len(y) / (classes * np.maximum(counts, 1))
    else:
        of_class = np.asarray([rule.get(label, 1.0) for label in labels])
    return of_class[y].astype(np.float32)
