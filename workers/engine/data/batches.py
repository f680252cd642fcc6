"""Divides the training rows into equal batches, in an order that depends only on seed and epoch.

An epoch's last batch is filled with rows of weight 0. So one compiled step serves all batches, they can
be divided among any number of devices, and every row is used once per epoch. With the loss averaged over the
weights (`mean_with_sample_weight`) the gradient equals the incomplete batch's.

The loss and the metrics of user code need not know weights, so its last batch is shorter, as in Keras' `fit`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.rows import Rows

WINDOW_PARTS = 8
"""Parts of a file whose rows are permuted together."""

Batch = tuple[Array, Array, Array]


@dataclass
class Batches:
    """The training rows and how they are divided into batches.

    Attributes:
        x: features, (rows, …).
        y: targets, (rows, …).
        weights: sample weights, (rows,) float32.
        size: rows per batch; a multiple of the number of devices that share it.
        seed: for the row order.
        shuffle: whether each epoch has a new random order.
        parts: positions at which the parts of the rows' file begin, followed by the number of
            rows; None for rows whose place in the order does not matter.
        is_filled: whether an epoch's last batch is filled with rows of weight 0.
    """

    x: Rows
    y: Array
    weights: Array
    size: int
    seed: int
    shuffle: bool
    parts: Array | None = None
    is_filled: bool = True
    _kept: tuple[int, Array | None] | None = field(default=None, init=False, repr=False)

    @property
    def steps(self) -> int:
        """The batch count per epoch."""
        return math.ceil(len(self.x) / self.size)

    @property
    def short_batch(self) -> int | None:
        """The row count of the last batch if it is shorter than the others; None if all are equal."""
        rest = len(self.x) % self.size
        return rest if rest and not self.is_filled else None

    @property
    def is_weighted(self) -> bool:
        """Whether rows count differently."""
        return not np.all(self.weights == 1)

    def parts_of(self, epoch: int) -> Array | None:
        """Return the parts that the order in `epoch` depends on; see `parts`."""
        return self._kept[1] if self._kept is not None and self._kept[0] == epoch else self.parts

    def keep_parts(self, epoch: int, parts: Array | None) -> None:
        """Give `epoch` these parts' order, in which another run began it; other epochs keep theirs."""
        self._kept = epoch, parts

    def order(self, epoch: int) -> Array:
        """Return the row numbers for `epoch` (counted from 1) in the order they are used, (rows,)."""
        rows = np.arange(len(self.x))
        if not self.shuffle:
            return rows
        # Seeded by the epoch: a resumed training needs no state of the epochs before.
        rng = np.random.default_rng((self.seed, epoch))
        parts = self.parts_of(epoch)
        return rng.permutation(rows) if parts is None else _permute_by_parts(rng, parts)

    def table(self, epoch: int) -> tuple[Array, Array]:
        """Return the row numbers for each batch in `epoch`, and their weights; both (steps, size).

        The last batch is filled by repeating its own rows, with weight 0. See also `short_batch`.
        """
        order = self.order(epoch)
        missing = self.steps * self.size - len(order)
        # Not filled with zeros: batch normalization includes rows of weight 0 in its statistics.
        last = order[(self.steps - 1) * self.size :]
        rows = np.concatenate([order, np.resize(last, missing)]) if missing else order
        weights = self.weights[rows]
        weights[len(order) :] = 0.0
        shape = (self.steps, self.size)
        # JAX has no 64-bit integers unless they are switched on
        return rows.astype(np.int32).reshape(shape), weights.reshape(shape)

    def draw(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        """Yield the batches (x, y, weights) for `epoch` from batch number `first` (counted from 0) on."""
        for make in self.makers(epoch, first):
            yield make()

    def makers(self, epoch: int, first: int = 0) -> Iterator[Callable[[], Batch]]:
        """Yield functions that return the batches for `epoch`; see `draw`."""
        last = self.steps - 1
        for number, (rows, weights) in enumerate(zip(*self.table(epoch), strict=True)):
            used = self.short_batch if number == last else None
            if number >= first:
                yield partial(self._batch, rows[:used], weights[:used])

    def _batch(self, rows: Array, weights: Array) -> Batch:
        return self.x[rows].astype(np.float32, copy=False), self.y[rows], weights


def _permute_by_parts(rng: np.random.Generator, parts: Array) -> Array:
    """Return all positions in a random order that reads only a few file parts at a time.

    The parts are permuted; then each `WINDOW_PARTS` neighbours in this order permute their rows together.

    Args:
        rng: draws the order.
        parts: see `Batches.parts`.
    """
    order = rng.permutation(len(parts) - 1)
    windows = []
    for start in range(0, len(order), WINDOW_PARTS):
        chosen = order[start : start + WINDOW_PARTS]
        rows = np.concatenate([np.arange(parts[part], parts[part + 1]) for part in chosen])
        windows.append(rng.permutation(rows))
    return np.concatenate(windows)


def batch_size_for(requested: int, rows: int, shards: int) -> int:
    """Return the batch size: the one wanted, but at most `rows` rounded up to a multiple of `shards`.

    Args:
        requested: rows per batch in the spec.
        rows: how many rows to batch.
        shards: how many devices share a batch.
    """
    return min(requested, math.ceil(rows / shards) * shards)


def row_weights(
    y: Array, classes: int, rule: str | dict[str, float] | None, labels: tuple[str, ...]
) -> Array:
    """Return each row's weight, (rows,) float32: 1, or its class's weight.

    Args:
        y: class numbers, (rows,).
        classes: how many classes there are.
        rule: None for weight 1; "balanced" for the same total weight in each class, that is
            rows / (classes · rows of the class); or weights by class label.
        labels: the class labels.
    """
    if rule is None:
        return np.ones(len(y), dtype=np.float32)
    if isinstance(rule, str):
        counts = np.bincount(y, minlength=classes)
        # A class may have no rows in this part, although the data set has some.
        class_weights = len(y) / (classes * np.maximum(counts, 1))
    else:
        class_weights = np.asarray([rule.get(label, 1.0) for label in labels])
    return class_weights[y].astype(np.float32)
