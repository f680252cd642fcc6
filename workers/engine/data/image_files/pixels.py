"""Counts the values in byte images, which takes little memory however many images there are."""

import numpy as np

from workers.engine.arrays import Array

VALUES = 256
CHUNK = 64
"""Images that are counted at once: NumPy needs eight bytes for each of their values."""


def count_values(images: Array) -> Array:
    """Return how often each value occurs in each channel, (channels, 256) int64.

    Args:
        images: (images, height, width, channels) uint8.
    """
    channels = images.shape[-1]
    counts = np.zeros((channels, VALUES), np.int64)
    for start in range(0, len(images), CHUNK):
        values = images[start : start + CHUNK].reshape(-1, channels)
        for channel in range(channels):
            counts[channel] += np.bincount(values[:, channel], minlength=VALUES)
    return counts


def moments(counts: Array) -> tuple[Array, Array]:
    """Return each channel's mean and variance, (channels,) float64 each, from `count_values`."""
    values = np.arange(VALUES, dtype=np.float64)
    totals = counts.sum(axis=1)
    mean = counts @ values / totals
    variance = (counts * (values - mean[:, None]) ** 2).sum(axis=1) / totals
    return mean, variance
