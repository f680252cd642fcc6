"""The normalized file of a dataset version: the same data always gives the same bytes."""

import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from workers.engine.data.table import Array
from workers.engine.errors import BadData

EPOCH_OF_ZIP = (1980, 1, 1, 0, 0, 0)


def write_npz(path: Path, arrays: Mapping[str, Array]) -> str:
    """Write arrays uncompressed, in the order given, without times; return the file's sha256.

    The bytes depend on the arrays alone, so equal data has an equal digest on every machine.
    """
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            member = zipfile.ZipInfo(f"{name}.npy", date_time=EPOCH_OF_ZIP)
            with archive.open(member, "w", force_zip64=True) as file:
                np.lib.format.write_array(
                    file, np.asarray(array, order="C"), version=(2, 0), allow_pickle=False
                )
    return file_digest(path)


def read_arrays(path: Path) -> dict[str, Array]:
    """Read every array of an .npz.

    Raises:
        BadData: not such a file.
    """
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise BadData(f"{path.name} is not a readable data set file: {error}") from error


def file_digest(path: Path) -> str:
    """Return the sha256 of the file at `path` as hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
