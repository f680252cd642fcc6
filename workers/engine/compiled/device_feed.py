"""Transfers an epoch's training rows to the device."""

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from workers.engine.arrays import Array
from workers.engine.compiled.placement import MeshPlacement
from workers.engine.data.batches import Batches
from workers.engine.data.prefetch import Waiting, prefetched

RESIDENT_BYTES = 512 << 20
"""Training rows up to this size stay on the device; larger data is sent in blocks, some blocks in advance."""
STREAMED_BYTES = 32 << 20
"""Size of a block of rows that are not in memory. In a larger one more rows share a page of the file, but the
first epoch begins when its first block has been read."""


class Block(NamedTuple):
    """Consecutive batches in an epoch.

    Attributes:
        first: the epoch's first batch, by its number.
        end: number after the last batch.
        batches: how many batches the epoch has.
        data: a program's arguments: x and y, each batch's row numbers, (batches, batch size), and their
            weights, (batches, batch size). On a mesh: x, y and weights, each (batches, batch size, …).
    """

    first: int
    end: int
    batches: int
    data: tuple[Any, ...]


def stays_on_device(batches: Batches) -> bool:
    """Return whether all training rows stay on the device; others are sent in blocks."""
    # Memory for all rows is what streamed rows are to save.
    return isinstance(batches.x, np.ndarray) and batches.x.nbytes + batches.y.nbytes <= RESIDENT_BYTES


class DeviceFeed:
    """Provides the rows in `batches` on the device.

    Args:
        batches: the training data.
        epochs: the last epoch; blocks for later ones are not made in advance.
        placement: the mesh whose devices share each batch; None for one device.

    Attributes:
        resident: all features and targets on the device; None if they do not fit.
        waiting: how long blocks were waited for.
    """

    def __init__(self, batches: Batches, epochs: int, placement: MeshPlacement | None = None) -> None:
        self._batches, self._epochs, self._placement = batches, epochs, placement
        self._blocks: Generator[Block] | None = None
        self._next: tuple[int, int] | None = None
        self.waiting = Waiting()
        self.resident: tuple[Any, Any] | None = None
        # On a mesh an epoch's rows are sent in order, so that each device gets its part of every batch: rows
        # that stay where they are would have to be exchanged between the devices in every step.
        if placement is None and stays_on_device(batches):
            self.resident = jax.device_put(batches.x), jax.device_put(batches.y)
        # Up to four blocks are on the device at once: one in use, two waiting and one in transfer.
        in_memory = isinstance(batches.x, np.ndarray)
        self._block_bytes = RESIDENT_BYTES // 4 if in_memory else STREAMED_BYTES

    def table(self, epoch: int) -> tuple[Array, Array]:
        """Return the row numbers and weights for an epoch's batches. See `Batches.table`."""
        return self._batches.table(epoch)

    def blocks(self, epoch: int, first: int) -> Generator[Block]:
        """Yield an epoch's batches from number `first` on: in one block, or in prefetched blocks.

        Close the iterator if it is not used to its end.
        """
        # The rows stay on the device, so the block is the whole epoch, whatever `first` is.
        if self.resident is not None:
            rows, weights = self.table(epoch)
            yield Block(0, len(rows), len(rows), (*self.resident, rows, weights))
            return
        if self._blocks is None or self._next != (epoch, first):
            self.close()
            self._blocks = prefetched(self._makers(epoch, first), self.waiting)
        self._next = None
        try:
            for block in self._blocks:
                yield block
                if block.end == block.batches:
                    # The first blocks of the next epoch are made while this one is validated.
                    self._next = (epoch + 1, 0) if epoch < self._epochs else None
                    return
        finally:
            if self._next is None:
                self.close()

    def close(self) -> None:
        """End the thread that makes blocks, and free those that have been made in advance."""
        self._next = None
        if self._blocks is not None:
            self._blocks.close()
        self._blocks = None

    def _makers(self, epoch: int, first: int) -> Iterator[Callable[[], Block]]:
        """Yield functions that make the blocks from a batch on, until the last epoch ends."""
        x, y = self._batches.x, self._batches.y
        row_bytes = (x.nbytes + y.nbytes) // len(x)
        length = max(1, self._block_bytes // (self._batches.size * row_bytes))
        for number in range(epoch, max(self._epochs, epoch) + 1):
            rows, weights = self.table(number)
            # A shorter batch has another shape than the others, so it is a block of its own.
            short = self._batches.short_batch
            last = len(rows) - (short is not None)
            for start in range(first if number == epoch else 0, last, length):
                end = min(start + length, last)
                yield partial(self._transfer, start, rows[start:end], weights[start:end])
            if short is not None:
                yield partial(self._transfer, last, rows[last:, :short], weights[last:, :short])

    def _transfer(self, start: int, rows: Array, weights: Array) -> Block:
        """Copy some batches to the device, or the devices."""
        if (placement := self._placement) is not None:
            parts = self._batches.x[rows.ravel()], self._batches.y[rows.ravel()]
            shaped = *(part.reshape(*rows.shape, *part.shape[1:]) for part in parts), weights
            placed = tuple(map(placement.batches, shaped))
            jax.block_until_ready(placed)
            return Block(start, start + len(rows), self._batches.steps, placed)
        flat = rows.ravel()
        x, y = jax.device_put(self._batches.x[flat]), jax.device_put(self._batches.y[flat])
        # JAX returns before they are copied, and waiting for them is waiting for data.
        jax.block_until_ready((x, y))
        # The rows were put in order above, so the batches of the block are consecutive rows of it.
        positions = np.arange(rows.size, dtype=np.int32).reshape(rows.shape)
        return Block(start, start + len(rows), self._batches.steps, (x, y, positions, weights))
