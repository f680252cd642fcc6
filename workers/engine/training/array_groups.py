"""Reads and writes the files of a checkpoint: each has a group of arrays, such as the weights.

Arrays on several devices are written in blocks, and large groups are read as views of their files. The files
have whole arrays in any case, so they do not depend on the devices.
"""

import errno
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

# Registers bfloat16 and the float8 types, so that NumPy knows them by name.
import ml_dtypes  # noqa: F401
import numpy as np

from workers.engine.arrays import Array, BlockwiseArray
from workers.engine.data.store import map_npz, npz_digest, write_npz
from workers.engine.errors import EngineError


class DiskFull(EngineError):
    """No space is left for a checkpoint; earlier ones are kept."""

    code = "disk_full"


def disk_full(error: OSError, folder: Path) -> DiskFull | None:
    """Return the error of a full disk, if an error has this reason."""
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    return DiskFull(f"no space left for a checkpoint in {folder}; earlier ones are kept")


class MappedArrays(list[Array]):
    """A group of arrays that are views of a file. Checkpoints link the file instead of writing it again.

    Attributes:
        file: its path. Once it is deleted, the arrays are still there.
    """

    def __init__(self, file: Path, arrays: Iterable[Array]) -> None:
        super().__init__(arrays)
        self.file = file


def write_group(path: Path, arrays: list[Any]) -> None:
    """Write a group of arrays to a file, which is not synced to the disk."""
    write_npz(path, dict(_named(arrays)))


def read_group(path: Path, dtypes: Iterable[str], *, mapped: bool = False) -> list[Array]:
    """Read a group of arrays.

    Args:
        path: the file.
        dtypes: the arrays' types.
        mapped: whether the arrays are views of the file, which may be larger than the memory.
    """
    if mapped:
        arrays = map_npz(path)
        return MappedArrays(path, (_typed(arrays, i, dtype) for i, dtype in enumerate(dtypes)))
    with np.load(path, allow_pickle=False) as stored:
        return [_typed(stored, i, dtype) for i, dtype in enumerate(dtypes)]


def _typed(stored: Mapping[str, Array], index: int, dtype: str) -> Array:
    array: Array = stored[f"{index:05d}"].view(np.dtype(dtype))
    return array


def _named(arrays: Iterable[Any]) -> Iterator[tuple[str, Array | BlockwiseArray]]:
    """Yield the names and the arrays as they are stored."""
    for i, array in enumerate(arrays):
        # NPZ supports only NumPy's own types. Registered ones, such as bfloat16, have `isbuiltin` 2 and are
        # stored as integers of the same width.
        width = f"u{array.dtype.itemsize}"
        yield f"{i:05d}", array.view(width) if array.dtype.isbuiltin == 2 else array


def weights_digest(arrays: Iterable[Array]) -> str:
    """Return the SHA-256 of the file in which a checkpoint would store these weights."""
    return npz_digest(dict(_named(arrays)))


def write_kept(file: Path, arrays: list[Any]) -> None:
    """Write a group of arrays to a new file in place of an older one, which checkpoints may have linked.

    Raises:
        DiskFull: no space is left; the older file is unchanged.
    """
    partial = file.with_suffix(".partial")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_group(partial, arrays)
        partial.replace(file)
    except OSError as error:
        partial.unlink(missing_ok=True)
        if (full := disk_full(error, file.parent.parent)) is not None:
            raise full from error
        raise
