"""Counts the weights in an untrusted HDF5 file, after checking that the file itself contains them all."""

import io
import math
from collections.abc import Iterator
from typing import Any

import h5py

from workers.engine.errors import BadModel

MAX_RATIO = 100
"""Maximum ratio of unpacked to packed bytes; real weights hardly shrink."""
MAX_NODES = 200_000
"""Maximum number of groups and arrays in the file."""


def stored_parameters(file: io.BytesIO) -> int:
    """Return how many weights an HDF5 file has.

    Raises:
        BadModel: the file has links, external data, objects, or impossible sizes.
    """
    limit = MAX_RATIO * file.getbuffer().nbytes
    count = size = 0
    with h5py.File(file, "r") as weights:
        for dataset in _datasets(weights):
            # Chunks that were never written take no space, so a small file may unpack to any size.
            count += math.prod(dataset.shape)
            size += math.prod(dataset.shape) * dataset.dtype.itemsize
            if size > limit:
                raise BadModel(f"its weights unpack to over {MAX_RATIO} times their size in the file")
    return count


def _datasets(root: h5py.Group) -> Iterator[h5py.Dataset]:
    # A hard link may lead back to a group above it, so addresses are remembered.
    todo, seen = [root], {_address(root)}
    while todo:
        group = todo.pop()
        for name in group:
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise BadModel(f"its weights hold a link at {group.name}/{name}; links are not followed")
            node = group[name]
            if (address := _address(node)) in seen:
                raise BadModel(f"its weights hold {group.name}/{name} twice")
            seen.add(address)
            if len(seen) > MAX_NODES:
                raise BadModel(f"its weights have over {MAX_NODES:,} parts")
            if isinstance(node, h5py.Group):
                todo.append(node)
            else:
                yield _checked(node)


def _address(node: Any) -> int:
    """Return an object's address in the file, which is equal for all its names."""
    return int(h5py.h5o.get_info(node.id).addr)


def _checked(node: Any) -> h5py.Dataset:
    if not isinstance(node, h5py.Dataset):
        raise BadModel(f"its weights hold a {type(node).__name__} at {node.name}")
    if node.shape is None:
        raise BadModel(f"{node.name} has no shape")
    if node.is_virtual or node.external:
        raise BadModel(f"the data of {node.name} is in another file")
    if node.dtype.kind not in "biufV" or node.dtype.hasobject:
        raise BadModel(f"{node.name} holds {node.dtype} values, not numbers")
    return node
