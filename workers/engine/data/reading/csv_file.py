"""Reads text tables, such as CSV and TSV, in any supported dialect."""

import csv
import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from jobs.spec.data.dialect import Dialect, DialectRequest
from jobs.spec.data.encodings import CODECS
from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import check_csv, check_expanded
from workers.engine.data.reading.csv_blocks import CsvLayout, NotSimple, first_texts, read_blocks
from workers.engine.data.reading.csv_values import column_of, gap_counts, has_one_group
from workers.engine.data.reading.damage import reading
from workers.engine.data.reading.exact_numbers import EqualDecimals, equal_decimals_in
from workers.engine.data.reading.plain_text import PlainText, plain_text
from workers.engine.data.spilled import Spill, SpilledColumns, head
from workers.engine.data.table import Table, check_names, check_size
from workers.engine.errors import BadData
from workers.engine.formulas import quoted

SHOWN_CHARACTERS = 80
REMEDY = "correct the file, or read it with a larger share in Damaged rows (max_bad_share)"


@dataclass
class BadRows:
    """Rows that have more or fewer fields than the header.

    Attributes:
        allowed: the share that may be left out.
        rows: line number, reason and text for each.
    """

    NAMES: ClassVar[tuple[str, ...]] = ("line", "reason", "text")
    """Names of the columns in the file of the rows."""

    allowed: float = 0.0
    rows: list[tuple[int, str, str]] = field(default_factory=list)

    def handle(self, row: Any) -> str:
        """Record a row that pyarrow cannot read; it is left out, or ends the reading."""
        number = row.number if row.number is not None else 0
        reason = f"{row.actual_columns} fields instead of {row.expected_columns}"
        self.rows.append((number, reason, row.text))
        return "skip" if self.allowed else "error"

    def check(self, rows: int, name: str) -> None:
        """Check the share of rows that were left out.

        Args:
            rows: how many rows were read.
            name: the file's name.

        Raises:
            BadData: it is larger than allowed.
        """
        count = len(self.rows)
        if count > self.allowed * (rows + count):
            number, reason, text = self.rows[0]
            raise BadData(
                f"{count:,} of {rows + count:,} rows of {name} cannot be read; at most a share of "
                f"{self.allowed:g} is left out. The first is line {number}: {reason}: {_shown(text)}; "
                f"{REMEDY}"
            )

    def write(self, path: Path) -> None:
        """Write the rows to a CSV file. Texts that a spreadsheet would evaluate as a formula are quoted."""
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(self.NAMES)
            writer.writerows((number, reason, quoted(text)) for number, reason, text in self.rows)


def read_csv(
    path: Path,
    limits: FileLimits = DEFAULT_LIMITS,
    request: DialectRequest | None = None,
    bad: BadRows | None = None,
    spill: Spill | None = None,
    texts: Collection[str] = (),
) -> Table:
    """Read a text table.

    Args:
        path: the file.
        limits: the size limits.
        request: the known dialect settings; the others are detected.
        bad: which rows may be left out; none by default. It gets those that are.
        spill: where a large file's columns are; without it they are in memory.
        texts: the columns whose numbers stay texts.

    Raises:
        BadData: the file is too large, its header is empty or repeats a name, or a row has more or fewer
            fields than the header.
        DamagedFile: it is not a text table.
    """
    check_size(path, limits)
    bad = bad or BadRows()
    spill = spill.for_size(path.stat().st_size) if spill is not None else None
    with (
        reading(path, "CSV", "save it as text with one header line, and texts with delimiters in quotes"),
        tempfile.TemporaryDirectory(dir=spill.folder if spill is not None else None) as folder,
    ):
        request = request or DialectRequest()
        # A block that has another encoding than the first bytes is refused.
        text = plain_text(path, request, limits, Path(folder), whole=spill is None)
        _check_header(text, path.name, limits)
        if spill is not None:
            if (table := _in_blocks(text, limits, spill, texts)) is not None:
                return table
            text = plain_text(path, request, limits, Path(folder))
            _check_header(text, path.name, limits)
        names = text.header.names
        check_csv(text.path, len(names), limits)
        source = _without_spaces(text.path, text.dialect, text.start, Path(folder))
        empty_lines = _empty_lines(text.start)
        rows = _read(source, text.dialect, text.header.fields, empty_lines, bad, spill, limits)
        arrow = rows.select(names)
    bad.check(arrow.num_rows, path.name)
    columns: dict[str, Array] | SpilledColumns = SpilledColumns(spill.folder) if spill is not None else {}
    size = 0
    decimals = {}
    for name in names:
        columns[name] = column = column_of(name, arrow[name], text.dialect, limits, stays_text=name in texts)
        if column.dtype.kind == "f" and (pair := equal_decimals_in(arrow[name])) is not None:
            decimals[name] = pair
        size += column.nbytes
        check_expanded(path.name, size, limits)
    of_floats = [name for name in names if head(columns, name, 1).dtype.kind == "f"]
    return replace(
        _table(columns, text, bad, decimals),
        gap_words={name: gap_counts(arrow[name]) for name in of_floats if np.isnan(columns[name]).any()},
        three_decimals=frozenset(name for name in of_floats if has_one_group(arrow[name])),
    )


def _table(
    columns: Mapping[str, Array], text: PlainText, bad: BadRows, decimals: Mapping[str, EqualDecimals]
) -> Table:
    header = text.header
    return Table(
        columns,
        dialect=text.shown,
        bad_rows=len(bad.rows),
        findings=(*text.findings, *header.findings),
        index=header.labels,
        renamed=header.renamed,
        equal_decimals=decimals,
    )


def _check_header(text: PlainText, file: str, limits: FileLimits) -> None:
    check_names(text.header.names, file, limits)


def _in_blocks(
    text: PlainText, limits: FileLimits, spill: Spill, stay_texts: Collection[str] = ()
) -> Table | None:
    """Return a large file's table if the file has the usual form; None if it needs the general way."""
    names, fields = text.header.names, text.header.fields
    columns = SpilledColumns(spill.folder)
    layout = CsvLayout(text.path, text.dialect, names, fields, _empty_lines(text.start), stay_texts)
    try:
        read_blocks(layout, columns, limits, spill.threads)
        texts = first_texts(layout)
    except NotSimple:
        return None
    numbers = (name for name in names if head(columns, name, 1).dtype.kind == "f")
    pairs = {name: equal_decimals_in(texts[name]) for name in numbers}
    return _table(columns, text, BadRows(), {name: pair for name, pair in pairs.items() if pair})


def _empty_lines(start: str) -> int:
    """Return how many empty lines precede the first row."""
    return len(re.findall(r"\r\n|\r|\n", start[: len(start) - len(start.lstrip("\r\n"))]))


def _read(
    path: Path,
    dialect: Dialect,
    fields: list[str],
    empty_lines: int,
    bad: BadRows,
    spill: Spill | None,
    limits: FileLimits,
) -> Any:
    """Return the rows as a pyarrow table with texts as they are in the file.

    Args:
        path: the file.
        dialect: its rows' dialect.
        fields: the names for all fields in a row.
        empty_lines: how many empty lines precede the first row.
        bad: gets the rows that have more or fewer fields.
        spill: where a large file's texts are; None for memory.
        limits: the limits for their size.
    """
    from pyarrow import ArrowInvalid, input_stream, string
    from pyarrow import csv as arrow_csv

    try:
        rows = (arrow_csv.read_csv if spill is None else arrow_csv.open_csv)(
            # Otherwise the end of its name would decide whether it is compressed.
            input_stream(str(path), compression=None),
            # With several threads a row has no number.
            read_options=arrow_csv.ReadOptions(
                use_threads=False,
                column_names=fields,
                skip_rows=empty_lines,
                # Unlike `skip_rows` it counts rows, not lines: a name may have a line break.
                skip_rows_after_names=int(dialect.header),
                encoding=CODECS[dialect.encoding],
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=bad.handle
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types={name: string() for name in fields},
            ),
        )
        if spill is not None:
            rows = _spilled(rows, spill.folder / "texts.arrow", path.name, limits)
    except ArrowInvalid as error:
        if bad.rows:
            number, reason, text = _with_lines(bad.rows, path, dialect, empty_lines)[-1]
            raise BadData(f"line {number} of {path.name} has {reason}: {_shown(text)}; {REMEDY}") from error
        raise
    if bad.rows:
        bad.rows = _with_lines(bad.rows, path, dialect, empty_lines)
    return rows


def _spilled(batches: Any, path: Path, name: str, limits: FileLimits) -> Any:
    """Return batches as a table over a mapped file.

    Args:
        batches: reads them.
        path: the new file's path.
        name: the source file's name, for messages.
        limits: the limits for its size in memory.
    """
    import pyarrow as pa

    size = 0
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batches.schema) as writer:
        for batch in batches:
            size += batch.nbytes
            check_expanded(name, size, limits)
            writer.write_batch(batch)
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def _with_lines(
    rows: list[tuple[int, str, str]], path: Path, dialect: Dialect, empty_lines: int
) -> list[tuple[int, str, str]]:
    """Return bad rows with their first line's number in place of the row's.

    pyarrow counts neither empty lines between rows nor those inside quotes.
    """
    lines, numbers = {}, {number for number, _, _ in rows}
    allow_long_fields(path)
    with path.open(newline="", encoding=CODECS[dialect.encoding], errors="replace") as file:
        reader = csv.reader(file, delimiter=dialect.delimiter)
        number, first = empty_lines, 1
        for fields in reader:
            if fields:
                number += 1
                if number in numbers:
                    lines[number] = first
            if len(lines) == len(numbers):
                break
            first = reader.line_num + 1
    return [(lines.get(number, number), reason, text) for number, reason, text in rows]


def allow_long_fields(path: Path) -> None:
    """Let Python's reader take fields that are as long as a file."""
    csv.field_size_limit(max(path.stat().st_size, csv.field_size_limit()))


def has_spaces_before_quotes(rows: str, dialect: Dialect) -> bool:
    """Return whether rows have spaces between a delimiter and a quote."""
    return re.search(rf'{re.escape(dialect.delimiter)} +"', rows) is not None


def _without_spaces(path: Path, dialect: Dialect, rows: str, folder: Path) -> Path:
    """Return a file with the same rows but without spaces between a delimiter and a quote, for pyarrow."""
    if not has_spaces_before_quotes(rows, dialect):
        return path
    copy = folder / path.name
    allow_long_fields(path)
    with (
        path.open(newline="", encoding=CODECS[dialect.encoding]) as source,
        copy.open("w", newline="", encoding=CODECS[dialect.encoding]) as target,
    ):
        writer = csv.writer(target, delimiter=dialect.delimiter)
        writer.writerows(csv.reader(source, delimiter=dialect.delimiter, skipinitialspace=True))
    return copy


def _shown(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…")
