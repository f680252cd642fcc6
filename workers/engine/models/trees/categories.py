"""Replaces category indices with numbers that trees can split: target means.

Micci-Barreca, A preprocessing scheme for high-cardinality categorical attributes (2001). As in
scikit-learn's `TargetEncoder`, the means for a training row are computed from rows in other folds: otherwise
a category with few rows would reveal their targets to the trees.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jobs.spec.data.profile import InputBlock, Profile
from workers.engine.arrays import Array

FOLDS = 5
SMOOTHING = 10.0
"""The mean of a category counts as much as the mean of all rows once the category has so many rows."""


@dataclass(frozen=True)
class TargetMeans:
    """The target means for each index in some input positions.

    Attributes:
        blocks: the positions, in order.
        tables: for each position, (indices, columns) float32.
    """

    blocks: tuple[InputBlock, ...] = ()
    tables: tuple[Array, ...] = ()

    def encode(self, x: Array) -> Array:
        """Return rows with the means in place of the indices, (rows, numbers) float32."""
        return self._replaced(
            x, [table[_index(x, b)] for b, table in zip(self.blocks, self.tables, strict=True)]
        )

    def _replaced(self, x: Array, means: Sequence[Array]) -> Array:
        """Return rows with one array from `means` in place of each position."""
        parts, start = [], 0
        for block, values in zip(self.blocks, means, strict=True):
            parts += [x[:, start : block.start], values]
            start = block.start + 1
        return np.ascontiguousarray(np.concatenate([*parts, x[:, start:]], axis=1), np.float32)

    def encode_training_rows(self, x: Array, targets: Array, weights: Array, seed: int) -> Array:
        """Return the training rows likewise, with means that do not contain their own targets.

        Args:
            x: (rows, positions).
            targets: (rows, columns).
            weights: (rows,).
            seed: for the folds.
        """
        folds = np.random.default_rng(seed).permutation(len(x)) % FOLDS
        means = [np.empty((len(x), targets.shape[1]), np.float32) for _ in self.blocks]
        for fold in range(FOLDS if self.blocks else 0):
            inside = folds == fold
            others = ~inside if (~inside).any() else inside
            for block, values in zip(self.blocks, means, strict=True):
                table = _table(block, x[others], targets[others], weights[others])
                values[inside] = table[_index(x[inside], block)]
        return self._replaced(x, means)


def target_means(blocks: Sequence[InputBlock], x: Array, targets: Array, weights: Array) -> TargetMeans:
    """Compute the means on the training rows; for the arguments see `TargetMeans.encode_training_rows`."""
    return TargetMeans(tuple(blocks), tuple(_table(block, x, targets, weights) for block in blocks))


def flat_blocks(profile: Profile) -> tuple[InputBlock, ...]:
    """Return the positions with indices in flattened rows, for each step in a window."""
    *steps, width = profile.input_shape
    return tuple(
        block.model_copy(update={"start": step * width + block.start})
        for step in range(math.prod(steps))
        for block in profile.embedded
    )


def _index(x: Array, block: InputBlock) -> Array:
    return x[:, block.start].astype(np.int64)


def _table(block: InputBlock, x: Array, targets: Array, weights: Array) -> Array:
    """Return the mean target for each index, drawn towards the mean over all rows."""
    weighted = targets * weights[:, None]
    overall = weighted.sum(axis=0) / max(weights.sum(), 1e-12)
    index = _index(x, block)
    rows = np.bincount(index, weights, block.size)
    sums = np.zeros((block.size, targets.shape[1]))
    np.add.at(sums, index, weighted)
    return ((sums + SMOOTHING * overall) / (rows + SMOOTHING)[:, None]).astype(np.float32)
