"""Keeps a large table's columns in files, which are mapped into memory.

A table may be larger than a worker's memory, but is described column by column. So a column is in memory
only while it is used, and its pages belong to the file, which the kernel can drop at any time.
"""

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.arrow_columns import texts_of, to_arrow
from workers.engine.data.texts import is_text
from workers.engine.data.words import Words, words_of

SPILLED_BYTES = 16 << 20
"""Files from this size on are read in parts, and smaller ones at once."""
SMALL_COLUMN_BYTES = 1 << 20
"""Columns below this size stay in memory."""
DECODED_BYTES = 64 << 20
"""Decoded texts up to this size together are kept, since they are used several times."""
MAX_OPEN_COLUMNS = 300
"""Maximum number of columns that are written at the same time, each of which has up to two open files."""


@dataclass(frozen=True)
class Spill:
    """How large files are read.

    Attributes:
        folder: for the columns.
        threads: that convert values.
        from_bytes: the smallest size at which files are read so.
    """

    folder: Path
    threads: int = 1
    from_bytes: int = SPILLED_BYTES

    def for_size(self, size: int) -> "Spill | None":
        """Return this for a file with `size` bytes; None if the file's columns are kept in memory."""
        return self if size >= self.from_bytes else None


class SpilledColumns(Mapping[str, Array]):
    """Equally long columns by name, (rows, …) each, the larger ones in files in a folder.

    Numbers and times are arrays over the mapped file. Texts are decoded whenever their column is read; those
    whose rows are arrays stay in memory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._columns: dict[str, Array | Any] = {}
        self._decoded: dict[str, Array] = {}
        self._words: dict[str, Words | None] = {}
        self._files = 0

    def __getitem__(self, name: str) -> Array:
        """Return a column."""
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return column
        if (words := self.words(name)) is not None:
            return words.rows()
        texts = self._decoded.get(name)
        if texts is None:
            texts = texts_of(column)
            if sum(part.nbytes for part in tuple(self._decoded.values())) + texts.nbytes > DECODED_BYTES:
                self._decoded.clear()
            self._decoded[name] = texts
        return texts

    def __setitem__(self, name: str, column: Array) -> None:
        """Add or replace a column; a large one is written to a file."""
        self._decoded.pop(name, None)
        self._words.pop(name, None)
        if is_text(column):
            is_spilled = _is_large(column) and column.ndim == 1
            self._columns[name] = self._spilled_texts(column) if is_spilled else column
        elif _is_large(column):
            path = self.new_file()
            np.ascontiguousarray(column).tofile(path)
            self.add_numbers(name, path, column.dtype, column.shape[1:])
        else:
            self._columns[name] = column

    def __iter__(self) -> Iterator[str]:
        """Yield the names in order."""
        return iter(self._columns)

    def __len__(self) -> int:
        """Return the column count."""
        return len(self._columns)

    def copy(self) -> "SpilledColumns":
        """Return a copy in which columns can be replaced."""
        new = SpilledColumns(Path(tempfile.mkdtemp(dir=self._folder)))
        new._columns, new._words = dict(self._columns), dict(self._words)
        return new

    def rows(self, name: str) -> int:
        """Return a column's row count."""
        return len(self._columns[name])

    def head(self, name: str, rows: int) -> Array:
        """Return a column's first rows."""
        column = self._columns[name]
        return column[:rows] if isinstance(column, np.ndarray) else texts_of(column.slice(0, rows))

    def is_in_memory(self, name: str) -> bool:
        """Return whether a column is an array, which may be over a mapped file."""
        return isinstance(self._columns[name], np.ndarray)

    def words(self, name: str) -> Words | None:
        """Return a text column as words; None if it has other values, or too many different ones."""
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return None
        if name not in self._words:
            self._words[name] = self._spilled_words(column)
        return self._words[name]

    def take(self, name: str, rows: Array) -> Array:
        """Return some rows from a column, given by their numbers."""
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return np.asarray(column[rows])
        words = self.words(name)
        return words.rows(rows) if words is not None else texts_of(column.take(rows))

    def part(self, name: str, start: int, stop: int) -> Any:
        """Return some rows from a column as an Arrow array."""
        column = self._columns[name]
        if isinstance(column, np.ndarray):
            return to_arrow(column[start:stop])
        return _part_of_texts(column, start, stop)

    def new_file(self) -> Path:
        """Return a path for a new file in the folder."""
        self._files += 1
        return self._folder / f"{self._files}.column"

    def add_numbers(self, name: str, path: Path, dtype: np.dtype[Any], row: tuple[int, ...] = ()) -> None:
        """Add a column whose values are in a file.

        Args:
            name: the column's name.
            path: the file.
            dtype: the value type.
            row: the shape that a row has.
        """
        values = np.memmap(path, dtype, mode="r") if path.stat().st_size else np.empty(0, dtype)
        self._columns[name] = np.asarray(values).reshape(-1, *row)

    def add_texts(self, name: str, utf8: Path, ends: Path) -> None:
        """Add a text column from a file with the bytes and one with the ends, int64 after a first 0."""
        self._columns[name] = _mapped_texts(utf8, ends)

    def _spilled_words(self, column: Any) -> Words | None:
        words = words_of(column)
        if words is None or not _is_large(words.codes):
            return words
        path = self.new_file()
        words.codes.tofile(path)
        return words._replace(codes=np.asarray(np.memmap(path, np.int32, mode="r")))

    def _spilled_texts(self, column: Array) -> Any:
        writer = TextWriter(self)
        for start in range(0, len(column), TextWriter.ROWS):
            writer.append(to_arrow(column[start : start + TextWriter.ROWS]))
        return _mapped_texts(*writer.close())


def _is_large(column: Array) -> bool:
    return column.nbytes >= SMALL_COLUMN_BYTES


def _part_of_texts(texts: Any, start: int, stop: int) -> Any:
    """Return some texts as an array that has no other bytes, unlike an Arrow slice."""
    import pyarrow as pa

    _, offsets, body = texts.buffers()
    ends = np.frombuffer(offsets, np.int64)[start : stop + 1]
    first, last = int(ends[0]), int(ends[-1])
    buffers = [None, pa.py_buffer(ends - first), body.slice(first, last - first)]
    return pa.Array.from_buffers(pa.large_string(), stop - start, buffers)


def _mapped_texts(utf8: Path, ends: Path) -> Any:
    import pyarrow as pa

    rows = ends.stat().st_size // 8 - 1
    offsets = pa.memory_map(str(ends)).read_buffer()
    body = pa.memory_map(str(utf8)).read_buffer() if utf8.stat().st_size else pa.py_buffer(b"")
    return pa.Array.from_buffers(pa.large_string(), rows, [None, offsets, body])


class NumberWriter:
    """Appends one column's values to a file."""

    def __init__(self, columns: SpilledColumns, dtype: np.dtype[Any]) -> None:
        self._columns, self._dtype = columns, dtype
        self._path = columns.new_file()
        self._file = self._path.open("wb")

    def append(self, values: Array) -> None:
        """Append values, (rows,)."""
        self._file.write(np.ascontiguousarray(values, self._dtype).data)

    def close(self) -> Path:
        """Close the file, and return its path."""
        self._file.close()
        return self._path

    def finish(self, name: str) -> None:
        """Close the file, and add the column."""
        self._columns.add_numbers(name, self.close(), self._dtype)

    def abort(self) -> None:
        """Close and remove the file."""
        self._file.close()
        self._path.unlink()


class TextWriter:
    """Appends one column's texts to a file, and their ends to another one."""

    ROWS = 65_536

    def __init__(self, columns: SpilledColumns) -> None:
        self._columns = columns
        self._paths = (columns.new_file(), columns.new_file())
        self._files: tuple[IO[bytes], IO[bytes]] = (self._paths[0].open("wb"), self._paths[1].open("wb"))
        self._bytes = 0
        self._files[1].write(np.zeros(1, np.int64).data)

    def append(self, texts: Any) -> None:
        """Append an Arrow array with type large_string, without nulls."""
        if not len(texts):
            return
        _, offsets, body = texts.buffers()
        ends = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        first, last = int(ends[0]), int(ends[-1])
        if last > first:
            self._files[0].write(body.slice(first, last - first))
        self._files[1].write((ends[1:] + (self._bytes - first)).data)
        self._bytes += last - first

    def close(self) -> tuple[Path, Path]:
        """Close the files, and return their paths."""
        for file in self._files:
            file.close()
        return self._paths

    def finish(self, name: str) -> None:
        """Close the files, and add the column."""
        self._columns.add_texts(name, *self.close())

    def abort(self) -> None:
        """Close and remove the files."""
        for path in self.close():
            path.unlink()


Writer = NumberWriter | TextWriter


@contextlib.contextmanager
def writers(
    columns: SpilledColumns, dtypes: Mapping[str, np.dtype[Any] | None]
) -> Iterator[dict[str, Writer]]:
    """Open a writer for each column, and add the columns when the block ends unless it raised.

    Args:
        columns: get the columns, in the same order as `dtypes`.
        dtypes: the value types; None for texts.
    """
    opened: dict[str, Writer] = {}
    with contextlib.ExitStack() as on_error:
        for name, dtype in dtypes.items():
            opened[name] = TextWriter(columns) if dtype is None else NumberWriter(columns, dtype)
            on_error.callback(opened[name].abort)
        yield opened
        on_error.pop_all()
    for name, writer in opened.items():
        writer.finish(name)


def head(columns: Mapping[str, Array], name: str, rows: int) -> Array:
    """Return a column's first rows without reading the others."""
    return columns.head(name, rows) if isinstance(columns, SpilledColumns) else columns[name][:rows]


def words(columns: Mapping[str, Array], name: str) -> Words | None:
    """Return a large table's text column as words; None for other columns."""
    return columns.words(name) if isinstance(columns, SpilledColumns) else None


def take(columns: Mapping[str, Array], name: str, rows: Array) -> Array:
    """Return some rows from a column, given by their numbers, without reading the others."""
    return columns.take(name, rows) if isinstance(columns, SpilledColumns) else columns[name][rows]


def editable(columns: Mapping[str, Array]) -> "dict[str, Array] | SpilledColumns":
    """Return a copy in which columns can be replaced."""
    return columns.copy() if isinstance(columns, SpilledColumns) else dict(columns)


def length(columns: Mapping[str, Array], name: str) -> int:
    """Return a column's row count without reading it."""
    return columns.rows(name) if isinstance(columns, SpilledColumns) else len(columns[name])
