"""Transfers the training rows of an epoch to the device."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.batches import Batches

RESIDENT_BYTES = 512 << 20
"""Training rows up to this size stay on the device; larger data is sent in blocks, one block in advance."""


class Block(NamedTuple):
    """Consecutive batches of an epoch.

    Attributes:
        first: number of the first batch in the epoch.
        end: number after the last batch.
        batches: number of batches in the epoch.
        data: arguments of a program: x and y, the row numbers of each batch, (batches, batch size), and their
            weights, (batches, batch size).
    """

    first: int
    end: int
    batches: int
    data: tuple[Any, Any, Any, Any]


class DeviceFeed:
    """Provides the rows of `batches` on the device.

    Attributes:
        resident: all features and targets on the device; None if they do not fit.
    """

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        size = batches.x.nbytes + batches.y.nbytes
        fits = size <= RESIDENT_BYTES
        self.resident = (jax.device_put(batches.x), jax.device_put(batches.y)) if fits else None

    def table(self, epoch: int) -> tuple[Array, Array]:
        """Return the row numbers and weights of an epoch's batches. See `Batches.table`."""
        return self._batches.table(epoch)

    def blocks(self, epoch: int, first: int) -> Iterator[Block]:
        """Yield the batches of an epoch from number `first` on: in one block, or in prefetched blocks."""
        rows, weights = self.table(epoch)
        # The rows stay on the device, so the block is the whole epoch, whatever `first` is.
        if self.resident is not None:
            yield Block(0, len(rows), len(rows), (*self.resident, rows, weights))
            return
        batch_bytes = self._batches.size * (self._batches.x[:1].nbytes + self._batches.y[:1].nbytes)
        # Up to three blocks are on the device at once: one in use, one waiting and one in transfer.
        length = max(1, RESIDENT_BYTES // 4 // batch_bytes)
        prefetched = None
        for start in range(first, len(rows), length):
            block = self._transfer(start, rows[start : start + length], weights[start : start + length])
            if prefetched is not None:
                yield prefetched
            prefetched = block
        if prefetched is not None:
            yield prefetched

    def _transfer(self, start: int, rows: Array, weights: Array) -> Block:
        """Start the transfer of some batches."""
        flat = rows.ravel()
        # JAX returns at once and copies in the background, while the steps of the block before run.
        x, y = jax.device_put(self._batches.x[flat]), jax.device_put(self._batches.y[flat])
        # The rows were put in order above, so the batches of the block are consecutive rows of it.
        own = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
        return Block(start, start + len(rows), self._batches.steps, (x, y, own, weights))
