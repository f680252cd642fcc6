"""Brings the training rows of an epoch to the device."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from workers.engine.data.batches import Batches
from workers.engine.data.table import Array

RESIDENT_BYTES = 512 << 20
"""Training rows up to this size lie on the device; larger ones go there in blocks, one ahead."""


class Block(NamedTuple):
    """Some batches of an epoch, from number `first` to `end` - 1, of `batches` in all.

    `data` is what a program takes: x and y of many rows, which of them make each batch, (batches, batch), and
    their weights, (batches, batch).
    """

    first: int
    end: int
    batches: int
    data: tuple[Any, Any, Any, Any]


class Feed:
    """The rows of `batches`, on the device where they fit there."""

    def __init__(self, batches: Batches) -> None:
        self._batches = batches
        size = batches.x.nbytes + batches.y.nbytes
        fits = size <= RESIDENT_BYTES
        self.resident = (jax.device_put(batches.x), jax.device_put(batches.y)) if fits else None
        """Features and targets on the device, where they fit there."""

    def table(self, epoch: int) -> tuple[Array, Array]:
        """See `Batches.table`."""
        return self._batches.table(epoch)

    def blocks(self, epoch: int, first: int) -> Iterator[Block]:
        """Yield the batches of an epoch from number `first` on: in one block, or in several, one ahead."""
        rows, weights = self.table(epoch)
        if self.resident is not None:
            yield Block(0, len(rows), len(rows), (*self.resident, rows, weights))
            return
        ahead = None
        for start in range(first, len(rows), self._batches_a_block()):
            stop = start + self._batches_a_block()
            block = self._sent(start, rows[start:stop], weights[start:stop])
            if ahead is not None:
                yield ahead
            ahead = block
        if ahead is not None:
            yield ahead

    def _batches_a_block(self) -> int:
        x, y = self._batches.x, self._batches.y
        of_batch = self._batches.size * (x[:1].nbytes + y[:1].nbytes)
        return max(1, RESIDENT_BYTES // 4 // of_batch)

    def _sent(self, start: int, rows: Array, weights: Array) -> Block:
        """Send the rows of some batches on their way; the device has them by the time they are needed."""
        flat = rows.ravel()
        x, y = jax.device_put(self._batches.x[flat]), jax.device_put(self._batches.y[flat])
        own = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
        return Block(start, start + len(rows), self._batches.steps, (x, y, own, weights))
