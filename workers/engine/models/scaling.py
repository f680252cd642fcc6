"""Measures the training part's statistics that models and losses need."""

from dataclasses import dataclass
from typing import Any

import keras
import numpy as np

from jobs.spec.data.profile import Profile
from workers.engine.arrays import Array
from workers.engine.data.image_files.pixels import count_values, moments
from workers.engine.data.rows import Rows, in_parts


@dataclass(frozen=True)
class Scaling:
    """The training part's statistics for the normalization.

    Attributes:
        x_mean: per feature, or per channel for images.
        x_variance: likewise.
        y_mean: per target column, for regression; else None.
        y_variance: likewise.
        x_range: smallest and largest feature value.
    """

    x_mean: Array
    x_variance: Array
    y_mean: Array | None = None
    y_variance: Array | None = None
    x_range: tuple[float, float] = (0.0, 255.0)

    @property
    def y_std(self) -> Array | None:
        """The target's standard deviation, the unit for a regression's loss; else None."""
        return None if self.y_variance is None else np.sqrt(self.y_variance)

    def raw(self, normalized: Array) -> Array:
        """Return the rows, (rows, …) float32, from which the normalization makes these."""
        return (normalized * np.sqrt(self.x_variance) + self.x_mean).astype(np.float32)


def unit_scaling(width: int) -> Scaling:
    """Return statistics of the features that change nothing; no variable depends on their values.

    Args:
        width: the features, or the channels of images.
    """
    return Scaling(np.zeros(width), np.ones(width))


def normalization(scaling: Scaling, **named: Any) -> Any:
    """Return the layer that normalizes raw inputs; it has no variables.

    Args:
        scaling: the training part's statistics.
        named: the layer's name and dtype policy.
    """
    return keras.layers.Normalization(
        mean=scaling.x_mean.tolist(), variance=scaling.x_variance.tolist(), **named
    )


def measure_scaling(x: Rows, y: Array, profile: Profile) -> Scaling:
    """Compute the training rows' statistics.

    Args:
        x: the training rows' features, (rows, …).
        y: the training rows' targets.
        profile: the data set's profile.
    """
    if isinstance(x, np.ndarray):
        mean, variance = _moments(x, tuple(range(x.ndim - 1)))
        value_range = float(x.min()), float(x.max())
    else:
        mean, variance, value_range = _moments_in_parts(x)
    for block in profile.blocks:
        # Words are 0 or 1 and weights at most 1, and an index is no measure.
        if block.kind != "number":
            positions = slice(block.start, block.start + block.positions)
            mean[positions], variance[positions] = 0.0, 1.0
    if profile.task != "regression":
        return Scaling(mean, variance, x_range=value_range)
    return Scaling(mean, variance, *_moments(y, (0,)), x_range=value_range)


def target_scale(y: Array, profile: Profile) -> Array | None:
    """Return the unit for a regression's loss; see `Scaling.y_std`.

    Args:
        y: the training rows' targets.
        profile: the data set's profile.
    """
    return np.sqrt(_moments(y, (0,))[1]) if profile.task == "regression" else None


def _moments(values: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    if values.dtype == np.uint8 and values.ndim == 4:
        # The variance of NumPy needs eight bytes for each pixel of all images.
        mean, variance = moments(count_values(values))
    else:
        mean = values.mean(axis=axes, dtype=np.float64)
        variance = values.var(axis=axes, dtype=np.float64)
    return mean, _usable(variance)


def _usable(variance: Array) -> Array:
    # A constant feature gets variance 1: another value of it in serving would be divided by almost 0.
    return np.where(variance > 1e-12, variance, 1.0)


def _moments_in_parts(x: Rows) -> tuple[Array, Array, tuple[float, float]]:
    """Return mean, variance and range for the features if the vectors are not in memory.

    Each row is read once: two parts' squared deviations are added with the distance between their means
    (Chan, Golub and LeVeque 1979, Updating formulae and a pairwise algorithm for computing sample variances).
    """
    rows, low, high = 0, np.inf, -np.inf
    mean, deviations = np.zeros(x.shape[1:]), np.zeros(x.shape[1:])
    for part in in_parts(x):
        added = rows + len(part)
        distance = part.mean(axis=0, dtype=np.float64) - mean
        deviations += part.var(axis=0, dtype=np.float64) * len(part)
        deviations += distance**2 * (rows * len(part) / added)
        mean += distance * (len(part) / added)
        rows, low, high = added, min(low, float(part.min())), max(high, float(part.max()))
    return mean, _usable(deviations / rows), (low, high)
