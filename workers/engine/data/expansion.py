"""Counts how large a file becomes when it is read, before memory is allocated for it."""

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np

from jobs.spec.data.file_limits import FileLimits
from workers.engine.arrays import Array
from workers.engine.data.texts import BYTES_PER_TEXT
from workers.engine.errors import BadData, TooLarge

CHUNK_BYTES = 2**20
BYTES_PER_NUMBER = 8
LARGEST_ALLOCATION = 2**63 - 64
"""Bytes; Arrow asks for no memory above that, and names no number."""


def check_expanded(name: str, size: int, limits: FileLimits) -> None:
    """Check how large a file's data are in memory.

    Args:
        name: names the file, or the part that is read.
        size: bytes in memory.
        limits: the task's limits.

    Raises:
        TooLarge: it is above the limit.
    """
    if size > limits.expanded_bytes:
        raise too_large(f"{name} expands to {size:,} bytes", limits)


def too_large(fact: str, limits: FileLimits) -> TooLarge:
    """Return the error for data above the limit.

    Args:
        fact: a clause that names the data and their bytes.
        limits: the task's limits.
    """
    return TooLarge(
        f"{fact}; at most {limits.expanded_bytes:,} are read. Upload fewer rows or columns, or have an "
        "administrator raise TRAINYARD_MAX_EXPANDED_BYTES, or for large tables TRAINYARD_MAX_TABLE_BYTES"
    )


@contextlib.contextmanager
def allocations(name: str, limits: FileLimits) -> Iterator[None]:
    """Refuse a file for which Arrow cannot allocate the memory that a part asks for.

    A compressed part states its size, which Arrow allocates before it unpacks anything.

    Raises:
        BadData: the size is above the task's limit.
        MemoryError: it is not, but the process has no memory.
    """
    try:
        yield
    except MemoryError as error:
        if size := re.search(r"alloc of size (\d+) failed", str(error)):
            check_expanded(name, int(size[1]), limits)
        if "capacity too large" in str(error):
            check_expanded(name, LARGEST_ALLOCATION, limits)
        raise


def check_csv(path: Path, columns: int, limits: FileLimits) -> None:
    """Check a CSV file's data size: a row with two bytes takes as many values as the header has names.

    Args:
        path: the file.
        columns: how many names its header has.
        limits: the task's limits.

    Raises:
        BadData: it is above the limit.
    """
    lines = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            # Old Macintosh files end lines by a carriage return alone.
            lines += max(chunk.count(b"\n"), chunk.count(b"\r"))
    check_expanded(path.name, (lines + 1) * columns * BYTES_PER_NUMBER, limits)


def check_parquet(name: str, metadata: Any, limits: FileLimits) -> None:
    """Check a Parquet file's data size by the numbers in its metadata.

    Args:
        name: the file's name.
        metadata: a `pyarrow.parquet.FileMetaData`.
        limits: the task's limits.

    Raises:
        BadData: it is above the limit, or there are too many columns.
    """
    if metadata.num_columns > limits.columns:
        raise BadData(f"{name} has {metadata.num_columns:,} columns; at most {limits.columns:,} are read")
    check_expanded(name, metadata.num_rows * max(metadata.num_columns, 1) * BYTES_PER_NUMBER, limits)
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    check_expanded(name, sum(group.total_byte_size for group in groups), limits)


def read_npy(file: IO[bytes], *, name: str, size: int, limits: FileLimits) -> Array:
    """Read an array whose header promises no more data than the file has.

    Args:
        file: an `.npy` file's content from its start.
        name: the array's name, for messages.
        size: the content's size in bytes.
        limits: the task's limits.

    Raises:
        BadData: the array is too large, or contains Python objects.
        ValueError: the header is damaged, or does not fit the file size.
    """
    version = np.lib.format.read_magic(file)
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(version)
    if read_header is None:
        raise ValueError(f"array {name!r} has version {version} of the format")
    try:
        shape, fortran, dtype = read_header(file)
    except MemoryError as error:
        # Python's parser raises it for an expression that is nested too deep, such as a thousand signs.
        raise ValueError(f"array {name!r} has a header that is nested too deep") from error
    if dtype.hasobject:
        raise BadData(f"array {name!r} contains Python objects; supported are numbers, texts and times")
    # A dtype of no bytes lets a header of a hundred bytes ask for any number of values.
    values = math.prod(shape)
    check_expanded(name, values * max(dtype.itemsize, BYTES_PER_TEXT if dtype.kind in "SU" else 1), limits)
    start = file.tell()
    if values * dtype.itemsize != size - start:
        raise ValueError(f"array {name!r} has {size - start:,} bytes, but its header describes another size")
    body = np.frombuffer(bytearray(file.read(size - start)), dtype, count=values)
    return body.reshape(shape, order="F" if fortran else "C")
