"""Reads a large CSV file in blocks, on several threads, and converts each block at once.

The column types follow from all values, so those from the first block are only an assumption.
A block with other values changes them, and the file is read again from its start. This reader knows the usual
files alone: UTF-8 without quotes, decimal points, and no damaged row. It refuses the others, for which
`csv_file` has the general way; both give the same columns.
"""

import contextlib
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from jobs.spec.data.dialect import Dialect
from jobs.spec.data.file_limits import FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import BYTES_PER_NUMBER, check_expanded
from workers.engine.data.reading.csv_values import (
    LEADING_ZERO,
    MISSING,
    WHOLE,
    all_match,
    any_match,
    cleaned,
    trimmed,
)
from workers.engine.data.reading.exact_numbers import loses_digits
from workers.engine.data.spilled import MAX_OPEN_COLUMNS, SpilledColumns, writers

BLOCK_BYTES = 8 << 20
PARSED_BYTES = 1 << 19
"""Bytes that pyarrow parses at once, so that they stay in the processor's cache."""
MAX_ROW_BYTES = 2 << 20
SAMPLE_BYTES = 1 << 18
"""Bytes at the begin of a file from which the types are assumed."""
MAX_READINGS = 5
Kind = Literal["empty", "integer", "number", "text"]
DTYPES: dict[Kind, np.dtype[Any] | None] = {
    "empty": None,
    "integer": np.dtype(np.int64),
    "number": np.dtype(np.float64),
    "text": None,
}
"""Types of the values of each kind; None for texts."""
HEAD_ROWS = 1000
"""Texts of a block that show whether texts repeat."""
SEARCHED_BYTES = 1 << 18
"""Bytes that are compared at once, so that they stay in the processor's cache."""


class Converted(NamedTuple):
    """A block's columns.

    Attributes:
        rows: the row count.
        columns: numbers as float64 with NaN for gaps, whole numbers as int64, texts as Arrow arrays with type
            large_string without nulls.
        gaps: for each column with whole numbers, by its place, the rows that have no value.
    """

    rows: int
    columns: list[Any]
    gaps: dict[int, Array]

    @property
    def nbytes(self) -> int:
        """All columns' bytes."""
        return sum(column.nbytes for column in self.columns)


class NotSimple(Exception):
    """The file needs the general reader."""


class KindsChanged(Exception):
    """A block has values that its columns, as assumed, cannot have.

    Attributes:
        kinds: those that fit all blocks up to this one.
    """

    def __init__(self, kinds: dict[str, Kind]) -> None:
        super().__init__()
        self.kinds = kinds


@dataclass(frozen=True)
class CsvLayout:
    """A file's names and dialect, read from its first rows.

    Attributes:
        path: the file.
        dialect: its rows' dialect.
        names: the column names.
        fields: the names for all fields in a row, more than `names` if each row ends with a delimiter.
        empty_lines: how many empty lines precede the first row.
        texts: the columns whose numbers stay texts.
    """

    path: Path
    dialect: Dialect
    names: Sequence[str]
    fields: Sequence[str]
    empty_lines: int
    texts: Collection[str] = ()

    @property
    def is_simple(self) -> bool:
        """Return whether blocks may be read alone."""
        dialect = self.dialect
        return dialect.encoding == "utf-8" and dialect.decimal == "." and len(self.names) <= MAX_OPEN_COLUMNS


def read_blocks(
    layout: CsvLayout,
    columns: SpilledColumns,
    limits: FileLimits,
    threads: int,
) -> int:
    """Read a file's columns.

    Args:
        layout: the file.
        columns: get the columns, unless an error below is raised.
        limits: the limits for the column sizes.
        threads: how many blocks are converted at the same time.

    Returns:
        The row count.

    Raises:
        NotSimple: it needs the general reader, for its values or for a message about an error.
        BadData: the columns are too large.
    """
    if not layout.is_simple:
        raise NotSimple
    kinds: dict[str, Kind] = {name: "text" if name in layout.texts else "empty" for name in layout.names}
    for first, is_first in _blocks(layout.path, SAMPLE_BYTES):
        kinds = _merged(layout, kinds, first, layout.names, is_first=is_first)
        break
    for _ in range(MAX_READINGS):
        try:
            return _read_as(kinds, layout, columns, limits, threads)
        except KindsChanged as change:
            kinds = change.kinds
    raise NotSimple


def _read_as(
    kinds: dict[str, Kind],
    layout: CsvLayout,
    columns: SpilledColumns,
    limits: FileLimits,
    threads: int,
) -> int:
    """Read the file with these column kinds; see `read_blocks`."""
    rows = size = 0
    gaps: dict[str, list[Array]] = {}
    inexact: set[str] = set()

    convert = _Converter(layout, kinds, limits).convert
    with writers(columns, {name: DTYPES[kinds[name]] for name in layout.names}) as opened:
        for part in _in_order(convert, _blocks(layout.path, BLOCK_BYTES), threads):
            size += max(part.nbytes, part.rows * len(layout.names) * BYTES_PER_NUMBER)
            check_expanded(layout.path.name, size, limits)
            for place, name in enumerate(layout.names):
                opened[name].append(part.columns[place])
                if len(absent := part.gaps.get(place, ())):
                    gaps.setdefault(name, []).append(rows + absent)
                if kinds[name] == "integer" and name not in inexact and loses_digits(part.columns[place]):
                    inexact.add(name)
            rows += part.rows
        if inexact := inexact & gaps.keys():
            raise KindsChanged(kinds | dict.fromkeys(inexact, "text"))
    for name, parts in gaps.items():
        columns[name] = _with_gaps(columns[name], np.concatenate(parts))
    return rows


def _with_gaps(whole: Array, gaps: Array) -> Array:
    """Return whole numbers as floats: an integer array cannot represent a missing value."""
    numbers = whole.astype(np.float64)
    numbers[gaps] = np.nan
    return numbers


def first_texts(layout: CsvLayout) -> Any:
    """Return the first rows as an Arrow table with the texts of their fields.

    Raises:
        NotSimple: the file needs the general reader.
    """
    texts: dict[str, Kind] = dict.fromkeys(layout.names, "text")
    for first, is_first in _blocks(layout.path, SAMPLE_BYTES):
        return _parsed(layout, first, texts, layout.names, is_first=is_first)
    raise NotSimple


def _blocks(path: Path, size: int) -> Iterator[tuple[bytes, bool]]:
    """Yield a file in blocks that end with a row, and whether it is the first one.

    Raises:
        NotSimple: the file has quotes, which may contain line breaks, or a row that is longer than a block.
    """
    with path.open("rb") as file:
        is_first = True
        while block := file.read(size):
            if not block.endswith(b"\n"):
                block += file.readline(MAX_ROW_BYTES)
                if not block.endswith(b"\n") and file.read(1):
                    raise NotSimple
            if b'"' in block:
                raise NotSimple
            yield block, is_first
            is_first = False


def _in_order(
    convert: Callable[[bytes, bool], Any], blocks: Iterator[tuple[bytes, bool]], threads: int
) -> Iterator[Any]:
    """Yield what `convert` returns, in block order; few blocks are in memory."""
    waiting: deque[Future[Any]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for block in blocks:
                waiting.append(pool.submit(convert, *block))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


class _Converter:
    """Converts blocks to columns with given kinds."""

    def __init__(self, layout: CsvLayout, kinds: dict[str, Kind], limits: FileLimits) -> None:
        self._layout, self._kinds, self._limits = layout, kinds, limits
        # Whether numbers may be missing words such as NA: pyarrow compares every field with them.
        self._has_words = False

    def convert(self, block: bytes, is_first: bool) -> Converted:
        """Return a block's columns.

        Raises:
            KindsChanged: it has other values.
            NotSimple: it needs the general reader.
        """
        layout = self._layout
        table = self._table(block, is_first)
        numeric = [name for name in layout.names if DTYPES[self._kinds[name]] is not None]
        if numeric and _may_have_leading_zero(block, layout.dialect.delimiter):
            _check(layout, self._kinds, block, numeric, is_first=is_first)
        converted = Converted(table.num_rows, [], {})
        for place, name in enumerate(layout.names):
            column, kind = table[name].combine_chunks(), self._kinds[name]
            if kind == "number":
                converted.columns.append(column.fill_null(np.nan).to_numpy())
            elif kind == "integer":
                if column.null_count:
                    converted.gaps[place] = np.flatnonzero(column.is_null())
                converted.columns.append(column.fill_null(0).to_numpy())
            else:
                texts, longest = _texts_of(column)
                if longest > self._limits.text_characters:
                    raise NotSimple
                if kind == "empty" and longest:
                    _check(layout, self._kinds, block, [name], is_first=is_first)
                converted.columns.append(texts)
        return converted

    def _table(self, block: bytes, is_first: bool) -> Any:
        """Return a block as an Arrow table."""
        from pyarrow import ArrowInvalid

        layout, kinds = self._layout, self._kinds
        if not self._has_words:
            with contextlib.suppress(ArrowInvalid):
                table = _parsed(layout, block, kinds, layout.names, is_first=is_first, missing=("",))
                if not any(_has_nan(table[name]) for name in layout.names if kinds[name] == "number"):
                    return table
            self._has_words = True
        try:
            return _parsed(layout, block, kinds, layout.names, is_first=is_first)
        except ArrowInvalid as error:
            _check(layout, kinds, block, layout.names, is_first=is_first)
            raise NotSimple from error


def _has_nan(numbers: Any) -> bool:
    """Return whether a number is NaN and not null: pyarrow reads nan and -nan as different ones."""
    import pyarrow.compute as pc

    return bool(pc.any(pc.is_nan(numbers)).as_py())


def _texts_of(fields: Any) -> tuple[Any, int]:
    """Return a block's fields as texts without nulls, and the longest one's bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    head = fields[:HEAD_ROWS]
    rows = None
    if len(head.unique()) * 2 < len(head):
        encoded = fields.dictionary_encode()
        # Each different text is cleaned once.
        fields, rows = encoded.dictionary, encoded.indices
    texts = trimmed(fields).cast(pa.large_string())
    # A text has at most as many characters as bytes.
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    return texts if rows is None else texts.take(rows), longest


def _parsed(
    layout: CsvLayout,
    block: bytes,
    kinds: Mapping[str, Kind],
    names: Sequence[str],
    *,
    is_first: bool,
    missing: Sequence[str] = MISSING,
) -> Any:
    """Return a block's columns as an Arrow table. Numbers are null for missing ones, texts as in the file.

    Args:
        layout: the file's layout.
        block: some rows.
        kinds: the column kinds.
        names: the columns that are returned.
        is_first: whether the file begins with the block.
        missing: fields that are missing numbers.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    types = {"integer": pa.int64(), "number": pa.float64()}

    def read(size: int) -> Any:
        return arrow_csv.read_csv(
            pa.BufferReader(block),
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                column_names=list(layout.fields),
                skip_rows=layout.empty_lines if is_first else 0,
                skip_rows_after_names=int(layout.dialect.header and is_first),
                block_size=size,
            ),
            # A block has no quotes, and is parsed faster if none is expected.
            parse_options=arrow_csv.ParseOptions(delimiter=layout.dialect.delimiter, quote_char=False),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: types.get(kinds[name], pa.string()) for name in names},
                include_columns=list(names),
                null_values=list(missing),
            ),
        )

    try:
        return read(PARSED_BYTES)
    except pa.ArrowInvalid as error:
        if "straddling" not in str(error):
            raise
        # A row is longer.
        return read(len(block) + 1)


def _check(
    layout: CsvLayout, kinds: dict[str, Kind], block: bytes, names: Sequence[str], *, is_first: bool
) -> None:
    """Compare a block's values with its column kinds.

    Raises:
        KindsChanged: they do not fit.
        NotSimple: it needs the general reader.
    """
    merged = _merged(layout, kinds, block, names, is_first=is_first)
    if merged != kinds:
        raise KindsChanged(merged)


def _merged(
    layout: CsvLayout, kinds: dict[str, Kind], block: bytes, names: Sequence[str], *, is_first: bool
) -> dict[str, Kind]:
    """Return the kinds that fit this block's values too."""
    from pyarrow import ArrowInvalid

    texts: dict[str, Kind] = dict.fromkeys(names, "text")
    try:
        table = _parsed(layout, block, texts, names, is_first=is_first)
    except ArrowInvalid as error:
        raise NotSimple from error
    return kinds | {name: _merge(kinds[name], _kind_of(cleaned(table[name]))) for name in names}


def _merge(old: Kind, new: Kind) -> Kind:
    if old == new or new == "empty":
        return old
    if old == "empty":
        return new
    return "text" if "text" in (old, new) else "number"


def _kind_of(texts: Any) -> Kind:
    """Return the kind for a block's texts, by the same rules as `csv_values.column_of`."""
    import pyarrow.compute as pc
    from pyarrow import ArrowInvalid, float64, int64

    if texts.null_count == len(texts):
        return "empty"
    if any_match(texts, LEADING_ZERO):
        return "text"
    with contextlib.suppress(ArrowInvalid):
        pc.cast(texts, int64())
        if not all_match(texts, WHOLE):
            # Arrow reads 0x1F as a whole number, but not as another one.
            raise NotSimple
        return "integer"
    if all_match(texts, WHOLE):
        # Too large for 64 bits, or with a plus sign.
        raise NotSimple
    with contextlib.suppress(ArrowInvalid):
        pc.cast(texts, float64())
        return "number"
    return "text"


def _may_have_leading_zero(block: bytes, delimiter: str) -> bool:
    """Return whether a field may begin with a zero and a digit or an x, after an optional sign."""
    codes = np.frombuffer(b"\n" + block, np.uint8)
    separator = ord(delimiter)
    for start in range(0, len(codes) - 2, SEARCHED_BYTES):
        part = codes[start : start + SEARCHED_BYTES + 2]
        # Characters below the point are blanks, line ends, the comma, and signs.
        begins = part[:-2] < ord(".")
        if separator >= ord("."):
            begins |= part[:-2] == separator
        begins &= part[1:-1] == ord("0")
        begins &= part[2:] >= ord("0")
        places = start + np.flatnonzero(begins)
        following = codes[places + 2]
        places = places[(following <= ord("9")) | (following == ord("x")) | (following == ord("X"))]
        if _begin_fields(codes, places, separator):
            return True
    return False


def _begin_fields(codes: Array, places: Array, separator: int) -> bool:
    """Return whether a field begins after one of some places: only blanks and a sign are between."""
    signs = (codes[places] == ord("-")) | (codes[places] == ord("+"))
    places = places - signs
    before = codes[places]
    if ((before == separator) | (before == ord("\n")) | (before == ord("\r"))).any():
        return True
    blank = (before == ord(" ")) | (before == ord("\t"))
    return any(_only_blanks(codes, int(place), separator) for place in places[blank])


def _only_blanks(codes: Array, place: int, separator: int) -> bool:
    """Return whether there are only blanks between a field's begin and a place."""
    while place > 0 and codes[place] in b" \t" and codes[place] != separator:
        # A word before the blank, as in "2026-01-05 07:30", is part of the field.
        place -= 1
    return int(codes[place]) in (separator, ord("\n"), ord("\r"))
