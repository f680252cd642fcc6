"""Reads and makes arrays that are divided over several devices, a part at a time.

`numpy.asarray` of such an array collects it in host memory and keeps that copy as long as the array lives.
Here an array is read in blocks, each from the devices that have its parts, and made from the parts of each
device: neither the host nor a device has it whole.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import jax
import numpy as np

from workers.engine.arrays import Array

BLOCK_BYTES = 16 << 20
"""Maximum size of a block. It bounds the host memory for writing an array of any size."""

Place = tuple[slice, ...]
"""The part of an array: a slice with start and stop for each axis."""


def is_spread(value: Any) -> bool:
    """Return whether a value is an array on several devices, whole or in parts."""
    return isinstance(value, jax.Array) and len(value.sharding.device_set) > 1


class _Part(NamedTuple):
    """A part of an array that one device has."""

    place: Place
    data: Any


class SpreadArray:
    """An array on several devices that is read in blocks. The device array must not be donated before.

    Attributes:
        value: the device array.
        shape: its shape.
        dtype: the type of the blocks.
        nbytes: its size.
    """

    def __init__(self, value: Any, dtype: Any = None) -> None:
        self.value = value
        self.shape: tuple[int, ...] = tuple(value.shape)
        self.dtype = np.dtype(value.dtype if dtype is None else dtype)
        self.nbytes = int(value.nbytes)

    def view(self, dtype: Any) -> Self:
        """See `BlockwiseArray.view`."""
        return type(self)(self.value, dtype)

    def blocks(self) -> Iterator[Array]:
        """See `BlockwiseArray.blocks`. Blocks have at most `BLOCK_BYTES`."""
        for _, block in self.placed_blocks():
            yield block

    def placed_blocks(self) -> Iterator[tuple[Place, Array]]:
        """Yield `blocks` with their places."""
        # Of the devices with the same part, one is the first.
        parts = [
            _Part(_bounded(shard.index, self.shape), shard.data)
            for shard in self.value.addressable_shards
            if shard.replica_id == 0
        ]
        for place in places(self.shape, self.dtype.itemsize):
            yield place, self._block(parts, place)

    def _block(self, parts: Sequence[_Part], place: Place) -> Array:
        block = np.empty([side.stop - side.start for side in place], self.value.dtype)
        for part in parts:
            shared = [
                slice(max(ours.start, theirs.start), min(ours.stop, theirs.stop))
                for ours, theirs in zip(place, part.place, strict=True)
            ]
            if all(side.start < side.stop for side in shared):
                block[_relative(shared, place)] = _on_host(part.data, _relative(shared, part.place))
        return block.view(self.dtype)


def places(shape: Sequence[int], itemsize: int) -> Iterator[Place]:
    """Yield the places of an array's contiguous blocks of at most `BLOCK_BYTES`, in C order."""
    if not shape:
        yield ()
        return
    # What follows this axis fits into one block.
    axis = next(i for i in range(len(shape)) if itemsize * math.prod(shape[i + 1 :]) <= BLOCK_BYTES)
    length = BLOCK_BYTES // (itemsize * max(math.prod(shape[axis + 1 :]), 1))
    following = tuple(slice(0, size) for size in shape[axis + 1 :])
    for outer in np.ndindex(*shape[:axis]):
        before = tuple(slice(i, i + 1) for i in outer)
        for start in range(0, shape[axis], length):
            yield (*before, slice(start, min(start + length, shape[axis])), *following)


def put(array: Array, sharding: Any, dtype: Any) -> Any:
    """Return an array on the devices of a sharding; each gets only its part.

    Args:
        array: the values, of which each part is read by itself: they may be a mapped file's.
        sharding: how the result is divided.
        dtype: the type of the result.
    """
    shape = tuple(array.shape)
    parts = [
        # A copy, which does not keep a mapped file open.
        jax.device_put(np.array(array[index], dtype=dtype, order="C"), device)
        for device, index in sharding.addressable_devices_indices_map(shape).items()
    ]
    return jax.make_array_from_single_device_arrays(shape, sharding, parts)


def _bounded(index: Sequence[slice], shape: Sequence[int]) -> Place:
    """Return a shard's index with numbers in place of None."""
    return tuple(slice(*side.indices(size)[:2]) for side, size in zip(index, shape, strict=True))


def _relative(place: Sequence[slice], origin: Place) -> Place:
    return tuple(
        slice(side.start - first.start, side.stop - first.start)
        for side, first in zip(place, origin, strict=True)
    )


def _on_host(data: Any, place: Place) -> Array:
    """Return a part of an array on one device."""
    if next(iter(data.devices())).platform == "cpu":
        # A view of the array's own memory.
        return np.asarray(data)[place]
    # NumPy would keep a host copy of the whole `data` alive.
    return np.asarray(cut_on_device(data, place))


def cut_on_device(data: Any, place: Place) -> Any:
    """Return a part of an array on one device. It is compiled once for each size, not for each place."""
    sizes = [side.stop - side.start for side in place]
    return jax.lax.dynamic_slice(data, [side.start for side in place], sizes)
