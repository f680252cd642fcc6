"""Reads a dataset version's file, and reads and writes NPZ files; equal data gives equal bytes."""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.arrow_file import is_arrow, read_columns
from workers.engine.data.texts import from_stored, to_stored
from workers.engine.errors import BadData

ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def write_npz(path: Path, arrays: Mapping[str, Array]) -> str:
    """Write arrays to an uncompressed NPZ file, in the order given; return the file's SHA-256.

    Its bytes depend only on the arrays, so equal data has an equal digest on every machine.
    """
    _write_archive(path, arrays)
    return file_digest(path)


def npz_digest(arrays: Mapping[str, Array]) -> str:
    """Return the SHA-256 of the file that `write_npz` would write."""
    file = io.BytesIO()
    _write_archive(file, arrays)
    return hashlib.sha256(file.getbuffer()).hexdigest()


def _write_archive(target: Path | io.BytesIO, arrays: Mapping[str, Array]) -> None:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        stored = (pair for name, array in arrays.items() for pair in to_stored(name, array))
        for name, array in stored:
            # A fixed time, since `np.savez` would store the present one.
            member = zipfile.ZipInfo(f"{name}.npy", date_time=ZIP_EPOCH)
            with archive.open(member, "w", force_zip64=True) as file:
                # Version and zip64 are fixed, so that the bytes do not depend on the size of the data.
                np.lib.format.write_array(
                    file, np.asarray(array, order="C"), version=(2, 0), allow_pickle=False
                )


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
