"""Reads tables with named columns from Parquet, Arrow and NumPy files, with size limits, without pickle."""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jobs.spec.data.dialect import Dialect
from jobs.spec.data.file_description import FileDescription
from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import (
    BYTES_PER_NUMBER,
    allocations,
    check_expanded,
    check_parquet,
    read_npy,
    too_large,
)
from workers.engine.data.reading.archives.archive import open_archive
from workers.engine.data.reading.arrow_lists import (
    check_columns,
    check_parquet_lists,
    with_json_lists,
    word_paths,
)
from workers.engine.data.reading.damage import reading
from workers.engine.data.reading.exact_columns import with_exact_texts
from workers.engine.data.reading.exact_numbers import LARGEST_INTEGER, EqualDecimals, loses_digits
from workers.engine.data.reading.header import Header
from workers.engine.data.reading.pandas_index import NUMBER, FrameColumns, different_names, frame_columns
from workers.engine.data.reading.plain_columns import (
    describe_durations,
    describe_zones,
    with_plain_columns,
)
from workers.engine.data.spilled import Spill, SpilledColumns, length
from workers.engine.data.texts import BYTES_PER_TEXT, TEXT, check_lengths, is_text, text_array, trimmed
from workers.engine.errors import BadData

MAX_NAME = 500
"""Maximum number of characters of a column's name."""
DIRECTORY_BYTES_PER_ARRAY = 2 * MAX_NAME
USUAL_UNITS = frozenset({"D", "h", "m", "s", "ms", "us", "ns"})
FINE_UNITS = frozenset({"ps", "fs", "as"})
"""Units of NumPy's times."""
NUMBERS = "biuf"
"""NumPy kinds of numbers: bool, int, unsigned int, float."""


@dataclass(frozen=True)
class Table:
    """Equally long columns by name. A column's first axis is the row.

    Attributes:
        columns: the columns by name.
        dialect: how the rows were written, for text tables.
        bad_rows: how many rows were left out, because they could not be read.
        gap_words: of number columns in text tables, the words for missing numbers with their rows.
        three_decimals: the number columns in text tables whose numbers all are whole or have three decimals.
        groups_by_points: such columns that are texts, since another column of the file has decimal commas.
        findings: sentences on how the file was understood.
        index: the columns with the labels of the rows, which the file has without a name.
        renamed: the name in the file and the new one, of each column whose name is not used.
        file: the file's format, and the place of the table in it; None for bundled data.
        equal_decimals: for columns in which different decimals became the same number, two of these.
    """

    columns: Mapping[str, Array]
    dialect: Dialect | None = None
    bad_rows: int = 0
    gap_words: Mapping[str, Mapping[str, int]] = dataclasses.field(default_factory=dict)
    three_decimals: frozenset[str] = frozenset()
    groups_by_points: frozenset[str] = frozenset()
    findings: tuple[str, ...] = ()
    index: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    file: FileDescription | None = None
    equal_decimals: Mapping[str, EqualDecimals] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        lengths = {name: length(self.columns, name) for name in self.columns}
        if not lengths:
            raise BadData("the file has no columns")
        if len(set(lengths.values())) > 1:
            raise BadData(f"the columns differ in length: {lengths}")
        if self.rows == 0:
            raise BadData("the file has no rows")

    @property
    def rows(self) -> int:
        """The row count."""
        return length(self.columns, next(iter(self.columns)))


def check_names(names: Sequence[str], file: str, limits: FileLimits) -> None:
    """Check that all column names differ.

    Raises:
        BadData: two are equal, or there are too many columns.
    """
    check_fields(names, file, limits)
    if repeated := [name for name, count in Counter(names).items() if count > 1]:
        raise BadData(f"{file} repeats {repeated[:20]}; every column needs a unique name")
    if "" in names:
        raise BadData(f"column {names.index('') + 1} of {file} has no name")


def check_fields(names: Sequence[str], file: str, limits: FileLimits) -> None:
    """Check the names in a file; an empty one, and one that another column has, get another name.

    Raises:
        BadData: one is too long, or there are too many columns.
    """
    check_count(len(names), file, limits)
    if long := next((name for name in names if len(name) > MAX_NAME), None):
        raise BadData(
            f"{file} has a column name of {len(long):,} characters, {long[:40]!r}…; at most {MAX_NAME} are "
            "read"
        )


def check_count(columns: int, file: str, limits: FileLimits) -> None:
    """Check the column count.

    Raises:
        BadData: there are too many.
    """
    if columns > limits.columns:
        raise BadData(f"{file} has {columns:,} columns; at most {limits.columns:,} are read")


def read_parquet(path: Path, limits: FileLimits = DEFAULT_LIMITS, spill: Spill | None = None) -> Table:
    """Read a Parquet file whose columns have single values, or label lists.

    Args:
        path: the file.
        limits: the size limits.
        spill: where a large file's columns are, which are read one after the other; without it they are
            in memory.

    Raises:
        BadData: the file is too large, or a column is nested in another way.
        DamagedFile: it is not a Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    check_size(path, limits)
    with (
        reading(path, "Parquet", "write it again, with one column for each feature"),
        allocations(path.name, limits),
    ):
        file = pq.ParquetFile(path)
        check_parquet(path.name, file.metadata, limits)
        # A frame has no column for a name that it has twice.
        check_fields(file.schema_arrow.names, path.name, limits)
        check_columns(file.schema_arrow)
        check_parquet_lists(path.name, file.metadata, limits)
        for field in file.schema_arrow:
            if pa.types.is_fixed_size_binary(field.type):
                check_expanded(path.name, file.metadata.num_rows * field.type.byte_width, limits)
        # As a dictionary, a long text that many rows repeat is in memory once, and can be counted.
        texts = [field.name for field in file.schema_arrow if _has_variable_width(field.type)]
        texts += word_paths(file.schema)
        file = pq.ParquetFile(path, read_dictionary=texts)
        size = file.metadata.num_rows * file.metadata.num_columns * BYTES_PER_NUMBER
        spill = spill.for_size(max(size, path.stat().st_size)) if spill is not None else None
        if spill is None:
            table = _from_table(_readable(_with_different_names(file.read()), limits), path, limits)
            return _described(table, file.schema_arrow)
        rows = file.metadata.num_rows
        schema = _with_different_names(file.schema_arrow.empty_table()).schema

        def read(name: str) -> Any:
            # Its column alone, if others have the same name in the file.
            return _with_different_names(file.read(columns=[name.split(NUMBER)[0]])).select([name])

        table = _from_columns(frame_columns(schema), rows, read, path, limits, spill.folder)
        return _described(table, file.schema_arrow)


def read_arrow(path: Path, limits: FileLimits = DEFAULT_LIMITS, spill: Spill | None = None) -> Table:
    """Read an Arrow IPC file or stream whose columns have single values, or label lists.

    Args:
        path: the file.
        limits: the size limits.
        spill: where a large file's columns are; without it they are in memory.

    Raises:
        BadData: the file is too large, or a column is nested in another way.
        DamagedFile: it is not an Arrow file.
    """
    import pyarrow as pa

    check_size(path, limits)
    with (
        reading(path, "Arrow", "write it again, with one column for each feature"),
        allocations(path.name, limits),
        pa.memory_map(str(path)) as source,
    ):
        batches = _batches(source)
        check_fields(batches.schema.names, path.name, limits)
        check_columns(batches.schema)
        parts, size = [], 0
        for batch in batches:
            # Compressed buffers are unpacked batch by batch, so the sum is checked as it grows.
            size += max(batch.get_total_buffer_size(), batch.num_rows * batch.num_columns * BYTES_PER_NUMBER)
            check_expanded(path.name, size + _bytes_of_views(batch), limits)
            # Arrow trusts the offsets in a file, and would read other memory of this process.
            batch.validate(full=True)
            parts.append(batch)
        table = _with_different_names(pa.Table.from_batches(parts, batches.schema))
        spill = spill.for_size(size) if spill is not None else None
        if spill is None:
            return _described(_from_table(_readable(table, limits), path, limits), batches.schema)
        columns = frame_columns(table.schema)
        rows = table.num_rows
        read = _from_columns(columns, rows, lambda name: table.select([name]), path, limits, spill.folder)
        return _described(read, batches.schema)


def _with_different_names(table: Any) -> Any:
    """Return an Arrow table whose fields have different names; see `frame_columns`."""
    names = table.schema.names
    return table if len({*names}) == len(names) else table.rename_columns(different_names(names))


def _bytes_of_views(batch: Any) -> int:
    """Return the bytes in texts that are views; many may show the same bytes."""
    import pyarrow as pa

    size = 0
    for column in batch.columns:
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
            # A view has 16 bytes, of which the first four are the length.
            lengths = np.frombuffer(column.buffers()[1], np.int32).reshape(-1, 4)[:, 0]
            size += int(lengths[column.offset : column.offset + len(column)].astype(np.int64).sum())
    return size


def _batches(source: Any) -> Any:
    """Return the batches from an Arrow stream or file."""
    import pyarrow as pa

    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)
    return _Batches(file.schema, (file.get_batch(i) for i in range(file.num_record_batches)))


@dataclass(frozen=True)
class _Batches:
    """The batches from an Arrow file, as a stream has them."""

    schema: Any
    batches: Iterator[Any]

    def __iter__(self) -> Iterator[Any]:
        return self.batches


def read_array(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> Table:
    """Read one NumPy array, (rows, columns), as the columns `column_1`, `column_2`, ….

    Raises:
        BadData: the file is too large, or the array has no columns with numbers or texts.
        DamagedFile: it is not an NPY file.
    """
    check_size(path, limits)
    with reading(path, "NPY", "write it with numpy.save"), path.open("rb") as file:
        array = _plain(
            path.name, read_npy(file, name=path.name, size=path.stat().st_size, limits=limits), limits
        )
    if array.ndim != 2:
        raise BadData(
            f"{path.name} has the shape {array.shape}; one array must have rows and columns. Write several "
            "arrays with numpy.savez"
        )
    names = [f"column_{number}" for number in range(1, array.shape[1] + 1)]
    check_names(names, path.name, limits)
    return Table({name: array[:, i] for i, name in enumerate(names)})


def _has_variable_width(kind: Any) -> bool:
    """Return whether an Arrow type is for texts or bytes, whose values may have any length."""
    import pyarrow as pa

    variants = ("string", "large_string", "string_view", "binary", "large_binary", "binary_view")
    return any(getattr(pa.types, f"is_{variant}")(kind) for variant in variants)


def _readable(table: Any, limits: FileLimits) -> Any:
    """Return a table with texts for what no array of numbers or texts can hold."""
    return with_exact_texts(with_plain_columns(with_json_lists(table, limits)))


def _from_columns(
    frame: FrameColumns,
    rows: int,
    read: Callable[[str], Any],
    path: Path,
    limits: FileLimits,
    folder: Path,
) -> Table:
    """Return a table whose columns are read one after the other.

    Args:
        frame: its columns.
        rows: the row count.
        read: returns an Arrow table that has a field.
        path: the file, for messages.
        limits: the limits for the size with all columns.
        folder: for the columns.
    """
    columns, size = SpilledColumns(folder), 0
    for name, numbers in frame.counted(rows).items():
        columns[name] = numbers
    for field, name in frame.names:
        part = _readable(read(field).select([field]), limits)
        series = _without_index(part).to_pandas().iloc[:, 0]
        columns[name] = column = _column(name, series, limits)
        size += column.nbytes
        check_expanded(path.name, size, limits)
    return _with_header(columns, frame.header)


def _described(table: Table, schema: Any) -> Table:
    """Return a table with sentences on the fields of a file that are read in another type."""
    described = (*describe_durations(schema), *describe_zones(schema, table.columns))
    return dataclasses.replace(table, findings=(*table.findings, *described)) if described else table


def _with_header(columns: Mapping[str, Array], header: Header) -> Table:
    return Table(columns, findings=header.findings, index=header.labels, renamed=header.renamed)


def _without_index(table: Any) -> Any:
    """Return a table whose pandas metadata, which have the types, make no column an index."""
    metadata = dict(table.schema.metadata or {})
    if b"pandas" in metadata:
        described = json.loads(metadata[b"pandas"])
        metadata[b"pandas"] = json.dumps(described | {"index_columns": []}).encode()
    return table.replace_schema_metadata(metadata)


def _from_table(table: Any, path: Path, limits: FileLimits) -> Table:
    """Return a table from an Arrow table that is in memory as a whole."""
    described = frame_columns(table.schema)
    frame = _without_index(table).to_pandas()
    places = {name: place for place, name in enumerate(table.schema.names)}
    columns = described.counted(len(frame))
    size = 0
    for field, name in described.names:
        columns[name] = column = _column(name, frame.iloc[:, places[field]], limits)
        size += column.nbytes
        check_expanded(path.name, size, limits)
    return _with_header(columns, described.header)


def _column(name: str, series: Any, limits: FileLimits) -> Array:
    """Convert a pandas series to an array. Texts have variable width, with "" for missing ones."""
    import pandas as pd

    if isinstance(series.dtype, pd.CategoricalDtype):
        return _categories(name, series, limits)
    if pd.api.types.is_bool_dtype(series.dtype) and not series.isna().any():
        return np.asarray(series.astype(bool))
    if pd.api.types.is_datetime64_any_dtype(series.dtype):
        # NumPy has no time zones
        moments = pd.to_datetime(series, utc=True).dt.tz_localize(None)
        return np.asarray(moments.to_numpy(dtype="datetime64[us]"))
    if pd.api.types.is_numeric_dtype(series.dtype):
        # An integer array cannot represent a missing value.
        whole = pd.api.types.is_integer_dtype(series.dtype) and not series.isna().any()
        # `with_exact_texts` left those that float64 has.
        whole = whole and not (series.dtype == np.uint64 and series.max() > LARGEST_INTEGER)
        return np.asarray(series.to_numpy(dtype=np.int64 if whole else np.float64))
    # As objects, since only they accept "" for a missing value of any type.
    texts = trimmed(text_array(map(str, series.astype(object).where(series.notna(), ""))))
    check_lengths(name, texts, limits.text_characters)
    return texts


def _categories(name: str, series: Any, limits: FileLimits) -> Array:
    """Convert a category series to texts."""
    # pandas numbers a missing value -1, which is the index of the last word.
    words = trimmed(text_array([*map(str, series.cat.categories), ""]))
    codes = series.cat.codes.to_numpy()
    lengths = np.strings.str_len(words)[codes].astype(np.int64)
    check_expanded(f"column {name!r}", int(lengths.sum()) + BYTES_PER_TEXT * len(codes), limits)
    texts: Array = words[codes]
    check_lengths(name, texts, limits.text_characters)
    return texts


def read_npz(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> Table:
    """Read named arrays whose first axis is the row. Arrays with Python objects are rejected.

    Raises:
        BadData: the file is too large, or an array has no rows or an unsupported type.
        DamagedFile: it is not an NPZ file.
    """
    check_size(path, limits)
    columns = {}
    directory_bytes = limits.columns * DIRECTORY_BYTES_PER_ARRAY
    with (
        reading(path, "NPZ", "write it with numpy.savez, one array for each column"),
        # Fewer columns than this, but more than their limit, are refused by name.
        open_archive(path, directory_bytes=directory_bytes, entries=2 * limits.columns) as archive,
    ):
        members = archive.infolist()
        check_names([member.filename for member in members], path.name, limits)
        # A small file may unpack to a huge one, so the sizes are added before unpacking.
        check_expanded(path.name, sum(member.file_size for member in members), limits)
        for member in members:
            name = member.filename.removesuffix(".npy")
            if name == member.filename:
                raise BadData(f"{path.name} contains {name!r}, which is not an array")
            with archive.open(member) as file:
                array = read_npy(file, name=name, size=member.file_size, limits=limits)
            columns[name] = _plain(name, array, limits)
    return Table(columns)


def _plain(name: str, array: Array, limits: FileLimits) -> Array:
    if array.ndim == 0:
        raise BadData(f"array {name!r} is a single value; its first axis must be the rows")
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    if is_text(array):
        array = trimmed(array.astype(TEXT))
        check_lengths(name, array, limits.text_characters)
        return array
    if array.dtype.kind == "u" and array.ndim == 1 and _exceeds_integers(array):
        return text_array(map(str, array.tolist()))
    if array.dtype.kind not in NUMBERS + "M":
        raise BadData(f"array {name!r} contains {array.dtype} values; supported are numbers, texts and times")
    if array.dtype.kind == "M":
        array = _times(name, array)
    # Numbers of the other byte order are as good, but JAX does not take them.
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _exceeds_integers(numbers: Array) -> bool:
    return bool(len(numbers)) and int(numbers.max()) > LARGEST_INTEGER and loses_digits(numbers)


def _times(name: str, array: Array) -> Array:
    """Return times in a usual unit: NumPy also has years and attoseconds, which it cannot convert to days.

    Raises:
        BadData: a time is outside the years that microseconds can count, or there is no unit.
    """
    unit, _ = np.datetime_data(array.dtype)
    if unit in USUAL_UNITS:
        return array
    times = array.astype("datetime64[us]")
    is_exact = unit in FINE_UNITS or bool((np.isnat(array) | (times.astype(array.dtype) == array)).all())
    if unit == "generic" or not is_exact:
        raise BadData(f"array {name!r} has times without a unit, or outside of the years that can be counted")
    return times


def check_size(path: Path, limits: FileLimits) -> None:
    """Check a file's size.

    Raises:
        TooLarge: it is above the limit.
        BadData: it is empty.
    """
    size = path.stat().st_size
    if size > limits.expanded_bytes:
        raise too_large(f"{path.name} has {size:,} bytes", limits)
    if size == 0:
        raise BadData(f"{path.name} is empty")
