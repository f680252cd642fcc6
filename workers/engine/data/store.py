"""Reads a dataset version's file, and reads and writes NPZ files; equal data gives equal bytes."""

import hashlib
import io
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO

import numpy as np

from workers.engine.arrays import Array, BlockwiseArray
from workers.engine.data.reading.arrow_file import is_arrow, read_columns
from workers.engine.data.texts import from_stored, to_stored
from workers.engine.errors import BadData

ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_npz(path: Path, arrays: Mapping[str, Array | BlockwiseArray]) -> str:
    """Write arrays to an uncompressed NPZ file, in the order given; return the file's SHA-256.

    Its bytes depend only on the values, so equal data has an equal digest on every machine.
    """
    _write_archive(path, arrays)
    return file_digest(path)


def npz_digest(arrays: Mapping[str, Array | BlockwiseArray]) -> str:
    """Return the SHA-256 of the file that `write_npz` would write."""
    file = io.BytesIO()
    _write_archive(file, arrays)
    return hashlib.sha256(file.getbuffer()).hexdigest()


def _write_archive(target: Path | io.BytesIO, arrays: Mapping[str, Array | BlockwiseArray]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            # NumPy makes a scalar of an array without axes when it is indexed.
            if isinstance(array, np.ndarray | np.generic):
                for part, stored in to_stored(name, array):
                    with _member(archive, part) as file:
                        np.lib.format.write_array(
                            file, np.asarray(stored, order="C"), version=(2, 0), allow_pickle=False
                        )
            else:
                with _member(archive, name) as file:
                    _write_blocks(file, array)


def _member(archive: zipfile.ZipFile, name: str) -> IO[bytes]:
    # The time, zip64 and the version of the arrays are fixed, so that the bytes depend on nothing else:
    # `np.savez` would store the present time, and choose the others by the size of the data.
    return archive.open(zipfile.ZipInfo(f"{name}.npy", date_time=ZIP_EPOCH), "w", force_zip64=True)


def _write_blocks(file: IO[bytes], array: BlockwiseArray) -> None:
    """Write an array as `write_array` does, a block at a time."""
    described = np.lib.format.dtype_to_descr(array.dtype)
    np.lib.format.write_array_header_2_0(
        file, {"descr": described, "fortran_order": False, "shape": array.shape}
    )
    for block in array.blocks():
        # Its own bytes, without a copy.
        file.write(block.reshape(-1).view(np.uint8))


def map_npz(path: Path) -> dict[str, Array]:
    """Return the arrays in a file from `write_npz` without reading them: the system does when they are used.

    The file must not be changed. It may be deleted: its space becomes free when the arrays do.
    """
    arrays: dict[str, Array] = {}
    whole = np.memmap(path, np.uint8, mode="r")
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        for member in archive.infolist():
            # The local header: 26 bytes, the lengths of the name and of further fields, and both.
            file.seek(member.header_offset + 26)
            file.seek(sum(struct.unpack("<HH", file.read(4))), io.SEEK_CUR)
            np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
            size = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            values = whole[file.tell() : file.tell() + size].view(dtype)
            arrays[member.filename.removesuffix(".npy")] = values.reshape(shape)
    return arrays


def read_arrays(path: Path) -> dict[str, Array]:
    """Read all arrays from a dataset version's file, or from an NPZ file.

    Earlier releases wrote NPZ files with the same arrays.

    Raises:
        BadData: it is neither.
    """
    if is_arrow(path):
        return read_columns(path)
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return from_stored({name: arrays[name] for name in arrays.files})
    except (zipfile.BadZipFile, KeyError, ValueError, EOFError) as error:
        raise BadData(f"{path.name} is not a readable data set file: {error}") from error


def file_digest(path: Path) -> str:
    """Return a file's SHA-256 as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
