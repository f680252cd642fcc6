"""Reads several text files as one table: their rows follow each other, and their columns agree.

They are copied into one file, so that a column's type follows from the values in all files, and a large
table is read in parts as usual. Tables in other formats have types; see `joined_tables`.
"""

import codecs
import csv
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from jobs.spec.data.dialect import Dialect, DialectRequest
from jobs.spec.data.encodings import CODECS
from jobs.spec.data.file_limits import FileLimits
from workers.engine.data.reading.bad_rows import BadRows
from workers.engine.data.reading.csv_columns.batches import allow_long_fields
from workers.engine.data.reading.csv_file import has_spaces_before_quotes, read_csv
from workers.engine.data.reading.damage import reading
from workers.engine.data.reading.joined_tables import JOINED, check_same_columns, check_sizes, places
from workers.engine.data.reading.json_document import loads
from workers.engine.data.reading.json_lines import read_json_lines
from workers.engine.data.reading.plain_text import PlainText, plain_text
from workers.engine.data.spilled import Spill
from workers.engine.data.table import Table, check_names
from workers.engine.errors import BadData

CHUNK = 2**20


@dataclass
class _Joined:
    """The file that the others are copied to, and where each begins in it."""

    path: Path
    names: list[str] = field(default_factory=list)
    begins: list[int] = field(default_factory=list)
    skipped: list[int] = field(default_factory=list)
    lines: int = 0

    def begin(self, name: str, skipped: int) -> None:
        """Note that a file's lines follow, without its first `skipped` ones."""
        self.names.append(name)
        self.begins.append(self.lines)
        self.skipped.append(skipped)

    def place(self, line: int) -> tuple[int, int]:
        """Return a line's file by its index, counted from 1, and the line in that file."""
        index = max(number for number, begin in enumerate(self.begins) if begin < line)
        return index, line - self.begins[index] + self.skipped[index]

    def explained(self, error: BadData) -> BadData:
        """Return an error with the same class, which has the code, and the file and line that it is about."""

        def at_home(match: re.Match[str]) -> str:
            index, line = self.place(int(match[1]))
            return f"line {line:,} of {self.names[index]}"

        return type(error)(re.sub(rf"line ([0-9]+)(?: of {JOINED})?", at_home, str(error), count=1))

    def locate(self, bad: BadRows) -> None:
        """Give bad rows the line in their own file, and its number."""
        rows = [(*self.place(number), reason, text) for number, reason, text in bad.rows]
        bad.rows = [(line, f"file {index + 1}: {reason}", text) for index, line, reason, text in rows]


def read_csv_files(
    paths: Sequence[Path],
    limits: FileLimits,
    request: DialectRequest,
    bad: BadRows,
    spill: Spill,
    stay_texts: Collection[str] = (),
) -> Table:
    """Read text tables. They are written as the first one, but may have another encoding.

    Args:
        paths: the files in their order.
        limits: the limits for all files together.
        request: the known dialect settings.
        bad: which rows may be left out; it gets those that are.
        spill: where a large table's columns are.
        stay_texts: the columns whose numbers stay texts.

    Raises:
        TooLarge: the files are above the limit.
        BadData: a file has other columns than the first one, or cannot be read.
        DamagedFile: a file is not a text table.
    """
    check_sizes(paths, limits)
    joined = _Joined(spill.folder / JOINED)
    texts = _join(paths, limits, request, spill, joined)
    first = texts[0]
    stay_texts = first.header.new_names(stay_texts)
    request = DialectRequest(
        **first.dialect.model_dump(include={"delimiter", "decimal", "header"}),
        encoding="utf-8",
        skip_lines=0,
        comments=False,
        header_rows=1,
    )
    try:
        table = read_csv(joined.path, limits, request, bad, spill, stay_texts)
    except BadData as error:
        raise joined.explained(error) from error
    joined.locate(bad)
    header = first.header
    findings = [finding for text in texts for finding in text.findings]
    return replace(
        table,
        dialect=first.shown,
        findings=(*dict.fromkeys((*findings, *header.findings)),),
        index=header.labels,
        renamed=header.renamed,
    )


def _join(
    paths: Sequence[Path], limits: FileLimits, request: DialectRequest, spill: Spill, joined: _Joined
) -> list[PlainText]:
    """Write the rows of all files to one, with the columns of the first. Return the files as plain texts."""
    texts: list[PlainText] = []
    with joined.path.open("w", newline="", encoding="utf-8") as target:
        for path, part in zip(paths, places(spill), strict=False):
            with reading(path, "CSV", "save it as text with one header line"):
                text = plain_text(path, request, limits, part.folder)
                check_names(text.header.names, path.name, limits)
                texts.append(text)
                # The first rows of a further file may not show how it is written.
                detected = texts[0].shown.model_dump(include={"delimiter", "decimal", "header"})
                request = request.model_copy(update=detected)
                names, fields = texts[0].header.names, text.header.names
                check_same_columns(paths[0].name, names, path.name, fields)
                order = [fields.index(name) for name in names]
                allow_long_fields(text.path)
                with text.path.open(newline="", encoding=CODECS[text.dialect.encoding]) as source:
                    spaced = has_spaces_before_quotes(source.read(CHUNK), text.dialect)
                    source.seek(0)
                    skipped = _copy_header(source, target, text, joined) if text.dialect.header else 0
                    joined.begin(path.name, skipped)
                    _append(source, target, joined, text.dialect, order, spaced=spaced)
    return texts


def _copy_header(source: IO[str], target: IO[str], text: PlainText, joined: _Joined) -> int:
    """Skip a file's header, write the first one's names, and return how many lines are above the rows."""
    header = csv.reader(iter(source.readline, ""), delimiter=text.dialect.delimiter)
    # A name may have a line break, and empty lines may come first.
    while not next(header, [""]):
        pass
    if not joined.names:
        writer = csv.writer(target, delimiter=text.dialect.delimiter, lineterminator="\n")
        writer.writerow(text.header.names)
        joined.lines += 1 + sum(name.count("\n") for name in text.header.names)
    return header.line_num


def _append(
    source: IO[str],
    target: IO[str],
    joined: _Joined,
    dialect: Dialect,
    order: list[int],
    *,
    spaced: bool,
) -> None:
    """Append a text file's rows."""
    lines = iter(source.readline, "")
    if spaced or order != sorted(order):
        writer = csv.writer(target, delimiter=dialect.delimiter, lineterminator="\n")
        for row in csv.reader(lines, delimiter=dialect.delimiter, skipinitialspace=spaced):
            # A damaged row keeps its fields, so that it is found.
            fits = len(row) >= len(order)
            writer.writerow([*(row[i] for i in order), *row[len(order) :]] if fits else row)
            joined.lines += 1
        return
    last = ""
    while chunk := source.read(CHUNK):
        if chunk.endswith("\r"):
            chunk += source.read(1)
        joined.lines += chunk.count("\n") + chunk.count("\r") - chunk.count("\r\n")
        target.write(chunk)
        last = chunk[-1]
    if last not in ("\n", "\r", ""):
        target.write("\n")
        joined.lines += 1


def read_json_files(paths: Sequence[Path], limits: FileLimits, bad: BadRows, spill: Spill) -> Table:
    """Read files that have JSON objects with the same keys, one object for each line.

    Args:
        paths: the files in their order.
        limits: the limits for all files together.
        bad: which lines may be left out; it gets those that are.
        spill: where a large table's columns are.

    Raises:
        TooLarge: the files are above the limit.
        BadData: a file has other keys than the first one, or cannot be read.
    """
    check_sizes(paths, limits)
    joined = _Joined(spill.folder / JOINED)
    keys: dict[str, None] = {}
    with joined.path.open("wb") as target:
        for path in paths:
            joined.begin(path.name, 0)
            keys_of_file: dict[str, None] = {}
            with path.open("rb") as source:
                for number, line in enumerate(source):
                    text = line.removeprefix(codecs.BOM_UTF8) if number == 0 else line
                    keys_of_file.update(dict.fromkeys(_keys(text)))
                    target.write(text if text.endswith(b"\n") else text + b"\n")
                    joined.lines += 1
            keys = keys or keys_of_file
            check_same_columns(paths[0].name, keys, path.name, keys_of_file)
    try:
        table = read_json_lines(joined.path, limits, bad, spill)
    except BadData as error:
        raise joined.explained(error) from error
    joined.locate(bad)
    return table


def _keys(line: bytes) -> Collection[str]:
    """Return a line's keys; none if it is no object, which the reader refuses."""
    try:
        value = loads(line)
    except ValueError:
        return ()
    return value if isinstance(value, dict) else ()
