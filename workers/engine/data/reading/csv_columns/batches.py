"""Reads the rows of a text table with all fields as texts, which pyarrow does faster than converting them."""

import contextlib
import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.spec.data.dialect import Dialect
from jobs.spec.data.encodings import CODECS
from jobs.spec.data.file_limits import FileLimits
from workers.engine.data.expansion import check_expanded
from workers.engine.data.reading.bad_rows import BadRows

BLOCK_BYTES = 1 << 20
"""Bytes that pyarrow divides at once, so that they stay in the processor's cache."""
LONG_BLOCK_BYTES = 1 << 24
"""Bytes that it divides at once if a row is longer than a usual block."""
PART_BYTES = 8 << 20
"""Bytes of texts that are converted at once, so that the fixed time of each column is seldom spent."""


class LongRow(Exception):
    """A row is longer than a block."""


class OtherEncoding(Exception):
    """A text does not have the encoding of the first ones."""


@dataclass(frozen=True)
class CsvRows:
    """A file's rows.

    Attributes:
        path: the file.
        name: how messages call it.
        dialect: how its rows are written.
        fields: the names for all fields in a row.
        empty_lines: how many empty lines precede the first row.
        block_bytes: the bytes that are divided at once.
    """

    path: Path
    name: str
    dialect: Dialect
    fields: Sequence[str]
    empty_lines: int
    block_bytes: int

    def whole(self, names: Sequence[str], bad: BadRows) -> Any:
        """Return the texts of columns as an Arrow table in memory, null for empty ones.

        Args:
            names: the columns.
            bad: gets the rows that have more or fewer fields.

        Raises:
            BadData: such a row may not be left out.
            LongRow: a row is longer than a block.
            OtherEncoding: a text has another encoding.
        """
        with self._explained(bad):
            return self._opened(names, bad, whole=True)

    def spilled(self, names: Sequence[str], bad: BadRows, folder: Path, limits: FileLimits) -> Any:
        """Return such a table over a mapped file.

        Args:
            names: the columns.
            bad: gets the rows that have more or fewer fields.
            folder: for the file.
            limits: the limits for its size in memory.
        """
        import pyarrow as pa

        path, size = folder / "texts.arrow", 0
        with self._explained(bad):
            batches = self._opened(names, bad, whole=False)
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batches.schema) as writer:
                for batch in batches:
                    size += batch.nbytes
                    check_expanded(self.name, size, limits)
                    writer.write_batch(batch)
        return pa.ipc.open_file(pa.memory_map(str(path))).read_all()

    def parts(self, names: Sequence[str], bad: BadRows) -> Iterator[Any]:
        """Yield such tables of some rows each; see `whole`."""
        import pyarrow as pa

        with self._explained(bad):
            batches = self._opened(names, bad, whole=False)
            part, size = [], 0
            for batch in batches:
                # A block may have empty lines alone.
                if not batch.num_rows:
                    continue
                part.append(batch)
                size += batch.nbytes
                if size >= PART_BYTES:
                    yield pa.Table.from_batches(part)
                    part, size = [], 0
            if part:
                yield pa.Table.from_batches(part)

    def _opened(self, names: Sequence[str], bad: BadRows, *, whole: bool) -> Any:
        from pyarrow import csv as arrow_csv
        from pyarrow import input_stream, string

        bad.rows.clear()
        return (arrow_csv.read_csv if whole else arrow_csv.open_csv)(
            # Otherwise the end of its name would decide whether it is compressed.
            input_stream(str(self.path), compression=None),
            # With several threads a row has no number.
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                column_names=list(self.fields),
                skip_rows=self.empty_lines,
                # Unlike `skip_rows` it counts rows, not lines: a name may have a line break.
                skip_rows_after_names=int(self.dialect.header),
                # Other encodings are decoded by Python. pyarrow skips the mark of UTF-8.
                encoding="utf8" if self.dialect.encoding == "utf-8" else CODECS[self.dialect.encoding],
                block_size=self.block_bytes,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.dialect.delimiter, newlines_in_values=True, invalid_row_handler=bad.handle
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: string() for name in names},
                include_columns=list(names),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    @contextlib.contextmanager
    def _explained(self, bad: BadRows) -> Iterator[None]:
        """Raise errors of pyarrow as those of a row, and give bad rows the numbers of their lines."""
        from pyarrow import ArrowInvalid

        try:
            yield
        except ArrowInvalid as error:
            if bad.rows and not bad.allowed:
                self._number(bad)
                raise bad.refusal(self.name) from error
            if "straddling" in str(error) and self.block_bytes < LONG_BLOCK_BYTES:
                raise LongRow from error
            if "invalid UTF8" in str(error):
                raise OtherEncoding from error
            raise
        self._number(bad)

    def _number(self, bad: BadRows) -> None:
        """Give bad rows their first line's number in place of the row's.

        pyarrow counts neither empty lines between rows nor those inside quotes.
        """
        if not bad.rows:
            return
        lines, numbers = {}, {number for number, _, _ in bad.rows}
        allow_long_fields(self.path)
        with self.path.open(newline="", encoding=CODECS[self.dialect.encoding], errors="replace") as file:
            reader = csv.reader(file, delimiter=self.dialect.delimiter)
            number, first = self.empty_lines, 1
            for fields in reader:
                if fields:
                    number += 1
                    if number in numbers:
                        lines[number] = first
                if len(lines) == len(numbers):
                    break
                first = reader.line_num + 1
        bad.rows = [(lines.get(number, number), reason, text) for number, reason, text in bad.rows]


def allow_long_fields(path: Path) -> None:
    """Let Python's reader take fields that are as long as a file."""
    csv.field_size_limit(max(path.stat().st_size, csv.field_size_limit()))
