"""Reads tables of named columns from CSV, Parquet or NPZ files, with size limits and without pickle."""

import csv
import zipfile
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workers.engine.errors import BadData

Array = np.ndarray[Any, np.dtype[Any]]

MAX_BYTES = 4 * 2**30
"""Maximum size of a file, packed and unpacked: the data is held in memory."""
MAX_COLUMNS = 20_000
NUMBERS = "biuf"
"""NumPy kinds of numbers: bool, int, unsigned int, float."""


@dataclass(frozen=True)
class Table:
    """Columns of equal length by name. The first axis of a column is the row."""

    columns: dict[str, Array]

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in self.columns.items()}
        if not lengths:
            raise BadData("the file has no columns")
        if len(set(lengths.values())) > 1:
            raise BadData(f"the columns differ in length: {lengths}")
        if self.rows == 0:
            raise BadData("the file has no rows")

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))


def read_csv(path: Path) -> Table:
    """Read a comma-separated file with one header line.

    Raises:
        BadData: the file is unreadable or too large, or its header is empty or repeats a name.
    """
    import pandas as pd

    _check_size(path)
    # pandas does not reject a repeated or empty name, but invents another: `a.1`, `Unnamed: 3`.
    _check_header(path)
    try:
        # By default pandas reads in chunks, and a column may get another type in each.
        frame = pd.read_csv(path, low_memory=False, skipinitialspace=True)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise _unreadable(
            path, "CSV", error, "save it as comma-separated text with one header line"
        ) from error
    return _from_frame(frame)


def _check_header(path: Path) -> None:
    try:
        # Spreadsheet programs write a byte order mark, which would become part of the first name.
        with path.open(newline="", encoding="utf-8-sig") as file:
            header = next(csv.reader(file), [])
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"{path.name} is not UTF-8 text: {error}; save it in UTF-8") from error
    _check_names([name.strip() for name in header], path.name)


def _check_names(names: Sequence[str], file: str) -> None:
    """Check that every column has a name of its own."""
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise BadData(f"{file} repeats {repeated}; every column needs a unique name")
    if "" in names:
        raise BadData(f"column {names.index('') + 1} of {file} has no name")
    if len(names) > MAX_COLUMNS:
        raise BadData(f"{file} has {len(names)} columns; at most {MAX_COLUMNS} are read")


def read_parquet(path: Path) -> Table:
    """Read a Parquet file of flat columns.

    Raises:
        BadData: the file is unreadable or too large, or a column is nested.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_size(path)
    try:
        file = pq.ParquetFile(path)
        # Estimated with 8 bytes per value, before the file is unpacked.
        if file.metadata.num_rows * max(file.metadata.num_columns, 1) * 8 > MAX_BYTES:
            raise BadData(f"{path.name} unpacks to more than {MAX_BYTES >> 30} GiB")
        # A frame has no column for a name that it has twice.
        _check_names([name.strip() for name in file.schema_arrow.names], path.name)
        table = file.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise _unreadable(
            path, "Parquet", error, "write it again, with one column for each feature"
        ) from error
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise BadData(
                f"column {field.name!r} contains {field.type} values; nested columns are not supported"
            )
    return _from_frame(table.to_pandas())


def _from_frame(frame: Any) -> Table:
    return Table({str(name).strip(): _column(frame[name]) for name in frame.columns})


def _column(series: Any) -> Array:
    """Convert a pandas series to an array. Texts become `<U`, with "" for missing ones."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(series.dtype) and not series.isna().any():
        return np.asarray(series.astype(bool))
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        # NumPy has no time zones
        moments = pd.to_datetime(series, utc=True).dt.tz_localize(None)
        return np.asarray(moments.to_numpy(dtype="datetime64[us]"))
    if pd.api.types.is_numeric_dtype(series.dtype):
        # An integer array cannot represent a missing value.
        whole = pd.api.types.is_integer_dtype(series.dtype) and not series.isna().any()
        return np.asarray(series.to_numpy(dtype=np.int64 if whole else np.float64))
    # As objects, since a series of categories accepts no other value, not even "".
    texts = series.astype(object).where(series.notna(), "")
    return np.asarray(texts.astype(str).to_list(), dtype=np.str_)


def read_npz(path: Path) -> Table:
    """Read named arrays whose first axis is the row. Arrays of Python objects are rejected.

    Raises:
        BadData: the file is not an NPZ file or is too large, or an array has no rows or an unsupported type.
    """
    _check_size(path)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_members(archive, path.name)
        with np.load(path, allow_pickle=False) as arrays:
            columns = {name: _plain(name, arrays[name]) for name in arrays.files}
    # zipfile passes on the errors of zlib; a RuntimeError means an encrypted or unknown format.
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError, OSError, RuntimeError) as error:
        raise _unreadable(
            path, "NPZ", error, "write it with numpy.savez, one array for each column"
        ) from error
    return Table(columns)


def _check_members(archive: zipfile.ZipFile, name: str) -> None:
    """Reject a small file that would unpack to a huge one, before unpacking it."""
    unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > MAX_BYTES:
        raise BadData(f"{name} unpacks to {unpacked:,} bytes; at most {MAX_BYTES:,} are read")
    if len(archive.infolist()) > MAX_COLUMNS:
        raise BadData(f"{name} contains {len(archive.infolist())} arrays; at most {MAX_COLUMNS} are read")


def _plain(name: str, array: Array) -> Array:
    if array.ndim == 0:
        raise BadData(f"array {name!r} is a single value; its first axis must be the rows")
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind not in NUMBERS + "UM":
        raise BadData(f"array {name!r} contains {array.dtype} values; supported are numbers, texts and times")
    return array


def _unreadable(path: Path, kind: str, error: Exception, remedy: str) -> BadData:
    """Return the error for a file that a library cannot read, without the folders in its message."""
    reason = str(error).strip().replace(str(path), path.name).rstrip(".")
    return BadData(f"{path.name} is not a readable {kind} file: {reason}; {remedy}")


def _check_size(path: Path) -> None:
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise BadData(f"{path.name} has {size:,} bytes; at most {MAX_BYTES:,} are read")
    if size == 0:
        raise BadData(f"{path.name} is empty")
