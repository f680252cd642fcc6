"""Reads text tables, such as CSV and TSV, in any supported dialect."""

import csv
import re
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path

from jobs.spec.data.dialect import Dialect, DialectRequest
from jobs.spec.data.encodings import CODECS
from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from workers.engine.arrays import Array
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_columns.batches import (
    BLOCK_BYTES,
    LONG_BLOCK_BYTES,
    CsvRows,
    LongRow,
    OtherEncoding,
    allow_long_fields,
)
from workers.engine.data.reading.csv_columns.facts import ColumnFacts
from workers.engine.data.reading.csv_columns.rules import FIRST_ROWS
from workers.engine.data.reading.csv_columns.tables import CsvTable
from workers.engine.data.reading.damage import reading
from workers.engine.data.reading.number_texts import has_decimal_commas
from workers.engine.data.reading.plain_text import PlainText, plain_text
from workers.engine.data.spilled import Spill, SpilledColumns, head
from workers.engine.data.table import Table, check_names, check_size


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
        # Later texts that have another encoding than the first bytes are found as they are read.
        is_whole = spill is None
        while True:
            text = plain_text(path, request, limits, Path(folder), whole=is_whole)
            check_names(text.header.names, path.name, limits)
            try:
                return _read(text, limits, bad, spill, texts, Path(folder))
            except OtherEncoding as error:
                if is_whole:
                    raise error.__cause__ or error from None
                is_whole = True


def _read(
    text: PlainText,
    limits: FileLimits,
    bad: BadRows,
    spill: Spill | None,
    stay_texts: Collection[str],
    folder: Path,
) -> Table:
    """Return a file's table; see `read_csv`."""
    source = _without_spaces(text.path, text.dialect, text.start, folder)
    rows = CsvRows(
        source, text.path.name, text.dialect, text.header.fields, _empty_lines(text.start), BLOCK_BYTES
    )
    stay_texts = text.header.new_names(stay_texts)
    table = CsvTable(rows, text.header.names, limits, stay_texts, bad)
    try:
        columns, facts = table.read(spill)
    except LongRow:
        table = replace(table, rows=replace(rows, block_bytes=LONG_BLOCK_BYTES))
        columns, facts = table.read(spill)
    if groups := _groups_by_points(columns, facts):
        columns, facts = replace(table, texts={*stay_texts, *groups}).read(spill)
    return replace(_table(columns, facts, text, bad), groups_by_points=groups)


def _groups_by_points(columns: Mapping[str, Array], facts: Mapping[str, ColumnFacts]) -> frozenset[str]:
    """Return the columns such as 3.421, where points divide thousands if others have decimal commas."""
    groups = frozenset(
        name for name, column in facts.items() if column.kind == "number" and column.has_one_group
    )
    texts = [name for name, column in facts.items() if column.kind == "text"]
    if not groups or not any(has_decimal_commas(head(columns, name, FIRST_ROWS).tolist()) for name in texts):
        return frozenset()
    return groups


def _table(
    columns: dict[str, Array] | SpilledColumns,
    facts: Mapping[str, ColumnFacts],
    text: PlainText,
    bad: BadRows,
) -> Table:
    header = text.header
    numbers = {name: column for name, column in facts.items() if column.kind == "number"}
    pairs = {name: column.equal_decimals() for name, column in numbers.items()}
    return Table(
        columns,
        dialect=text.shown,
        bad_rows=len(bad.rows),
        gap_words={name: column.words for name, column in numbers.items() if column.has_gaps},
        three_decimals=frozenset(name for name, column in numbers.items() if column.has_one_group),
        findings=(*text.findings, *header.findings),
        index=header.labels,
        renamed=header.renamed,
        equal_decimals={name: pair for name, pair in pairs.items() if pair is not None},
    )


def _empty_lines(start: str) -> int:
    """Return how many empty lines precede the first row."""
    return len(re.findall(r"\r\n|\r|\n", start[: len(start) - len(start.lstrip("\r\n"))]))


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
