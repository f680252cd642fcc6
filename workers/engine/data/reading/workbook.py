"""Writes a sheet of a workbook (.xlsx) as a CSV file, for the readers of text.

openpyxl reads it row by row and runs nothing: no formulas, macros or links. Cells have the result that the
program for spreadsheets stored.
"""

import contextlib
import csv
import datetime
import re
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from jobs.spec.data.file_limits import FileLimits
from workers.engine.data.expansion import BYTES_PER_NUMBER, CHUNK_BYTES, check_expanded
from workers.engine.data.reading.archives.archive import open_archive
from workers.engine.data.reading.damage import reading
from workers.engine.data.reading.merged_cells import MergedCells
from workers.engine.errors import BadData

DIRECTORY_BYTES = 4 << 20
SPREADSHEET = re.compile(r"xl/workbook\.xml|xl/_rels/workbook\.xml\.rels")
OTHERS = {
    "xl/workbook.bin": "a binary Excel workbook (.xlsb)",
    "word/document.xml": "a Word document",
    "ppt/presentation.xml": "a presentation",
}
ERRORS = frozenset(
    {"#DIV/0!", "#N/A", "#NAME?", "#NULL!", "#NUM!", "#REF!", "#VALUE!", "#GETTING_DATA", "#SPILL!"}
)
HAS_TIME = re.compile(r"[hs]", re.IGNORECASE)
NOT_FORMAT = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
"""Parts of a number format that are no letters of a date: texts, colours, and escaped signs."""
CELL, FORMULA = re.compile(rb"<[^\s<>/!?]*c[\s/>]"), re.compile(rb"<[^\s<>/!?]*f[\s/>]")
"""Tags of cells and formulas, and of little else: their names may have a prefix."""
KEPT_DIGITS = 15
"""Digits of a number that programs for spreadsheets keep."""
MAX_TAG = 256
BYTES_PER_CELL = 64
MAX_ROWS = 1_048_576
"""Rows of a sheet in Excel."""
MAX_SHEETS_NAMED = 10
TABLE_ROWS = 2
"""Rows with two values or more that a table has at least."""
RAGGED = "rows.csv"


class Sheet(NamedTuple):
    """The part of a workbook that was read: a sheet's name, and sentences on the others and on its cells."""

    name: str
    findings: tuple[str, ...]


def write_sheet(path: Path, target: Path, wanted: str | None, limits: FileLimits) -> Sheet:
    """Write one sheet as a CSV file with UTF-8 and commas.

    Args:
        path: the workbook.
        target: the new file.
        wanted: the sheet's name; None for the first visible one that has a table: two rows with two values.
            If none has, it is the first one with values.
        limits: the limits for the cells and the bytes.

    Raises:
        BadData: it has no such sheet or no values, or it is too large.
        DamagedFile: it is not a workbook.
    """
    with reading(path, "Excel", "save it again as .xlsx, or as CSV"), warnings.catch_warnings():
        # It warns of parts that it does not read, such as rules for the input.
        warnings.simplefilter("ignore")
        has_formulas, merged = _check_parts(path, limits)
        with _opened(path, data_only=True) as book:
            name, cells = _write_chosen(book, path, target, wanted, limits, merged)
            others = [sheet.title for sheet in book.worksheets if sheet.title != name]
        missing = _formulas_without_result(path, name) if has_formulas and cells.gaps else 0
    return Sheet(name, (*_other_sheets(name, others), *cells.findings(missing)))


@contextlib.contextmanager
def _opened(path: Path, *, data_only: bool) -> Iterator[Any]:
    """Open a workbook whose rows are read one by one."""
    import openpyxl

    # As a file, since the name of a stored upload has no suffix.
    with path.open("rb") as file:
        book = openpyxl.load_workbook(file, read_only=True, data_only=data_only, keep_links=False)
        try:
            yield book
        finally:
            book.close()


def _check_parts(path: Path, limits: FileLimits) -> tuple[bool, dict[str, MergedCells]]:
    """Check the parts of a workbook; return whether a sheet has formulas, and the merged cells by sheet."""
    with open_archive(path, directory_bytes=DIRECTORY_BYTES) as archive:
        names = {entry.filename for entry in archive.infolist()}
        check_expanded(path.name, sum(entry.file_size for entry in archive.infolist()), limits)
        if kind := next((kind for part, kind in OTHERS.items() if part in names), None):
            raise BadData(f"{path.name} is {kind}, which is not read: save the table as .xlsx or CSV")
        if not any(SPREADSHEET.fullmatch(name) for name in names):
            raise BadData(f"{path.name} is no workbook: it has no xl/workbook.xml; save it again as .xlsx")
        cells = formulas = 0
        merged: dict[str, MergedCells] = {}
        for name in names:
            if name.startswith("xl/worksheets/"):
                counted = _count_cells(archive, name)
                cells, formulas = cells + counted[0], formulas + counted[1]
                merged[name] = counted[2]
        # A row is in memory as a whole, and nothing limits its cells.
        check_expanded(path.name, cells * BYTES_PER_CELL, limits)
        # openpyxl does not read merged cells row by row.
        parts = _parts_of_sheets(archive) if any(merged.values()) else {}
        return formulas > 0, {name: merged[part] for name, part in parts.items() if part in merged}


def _parts_of_sheets(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the name of the file of each sheet in a workbook."""
    from openpyxl.reader.workbook import WorkbookParser

    parser = WorkbookParser(archive, "xl/workbook.xml", keep_links=False)
    parser.parse()
    return {sheet.name: part.target.lstrip("/") for sheet, part in parser.find_sheets()}


def _count_cells(archive: zipfile.ZipFile, name: str) -> tuple[int, int, MergedCells]:
    """Return at least how many cells and formulas a sheet has, and its cells that are merged over rows."""
    cells = formulas = 0
    merged = MergedCells()
    rest = b""
    with archive.open(name) as file:
        while block := file.read(CHUNK_BYTES):
            text = rest + block
            cells += len(CELL.findall(text))
            formulas += len(FORMULA.findall(text))
            merged.find(text)
            # A tag may continue in the next block.
            rest = text[text.rfind(b"<") :][:MAX_TAG] if b"<" in text[-MAX_TAG:] else b""
    return cells, formulas, merged


def _write_chosen(
    book: Any,
    path: Path,
    target: Path,
    wanted: str | None,
    limits: FileLimits,
    merged: Mapping[str, MergedCells],
) -> "tuple[str, _Cells]":
    """Write the wanted sheet, or the first one with a table; return its name."""
    sheets = [sheet for sheet in book.worksheets if wanted in (None, sheet.title)]
    if not sheets:
        names = _listed([sheet.title for sheet in book.worksheets])
        raise BadData(f"{path.name} has no sheet {wanted!r}; it has {names}")
    visible = [sheet for sheet in sheets if sheet.sheet_state == "visible"] or sheets
    with_values = None
    for sheet in visible:
        cells = _write_ragged(sheet, path, target, limits, merged)
        if cells.table_rows >= TABLE_ROWS or (cells.values and len(visible) == 1):
            return sheet.title, _write_filled(target, cells)
        if cells.values and with_values is None:
            with_values = sheet
    # The others may be notes about it.
    if with_values is not None:
        cells = _write_ragged(with_values, path, target, limits, merged)
        return with_values.title, _write_filled(target, cells)
    raise BadData(f"{path.name} has no values in {_listed([sheet.title for sheet in visible])}")


def _write_ragged(
    sheet: Any, path: Path, target: Path, limits: FileLimits, merged: Mapping[str, MergedCells]
) -> "_Cells":
    """Write a sheet's rows as they are beside the target, and count its cells."""
    cells = _Cells(path.name, limits, merged.get(sheet.title, MergedCells()))
    with target.with_name(RAGGED).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(cells.rows(sheet))
    return cells


def _write_filled(target: Path, cells: "_Cells") -> "_Cells":
    """Write equally long rows of the columns that have a value; rows without one are empty lines."""
    ragged, columns = target.with_name(RAGGED), sorted(cells.filled)
    csv.field_size_limit(max(ragged.stat().st_size, csv.field_size_limit()))
    with (
        ragged.open(newline="", encoding="utf-8") as source,
        target.open("w", newline="", encoding="utf-8") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        for row in csv.reader(source):
            writer.writerow([row[at] if at < len(row) else "" for at in columns] if row else [])
    ragged.unlink()
    return cells


class _Cells:
    """Converts a sheet's cells to texts, and counts them."""

    def __init__(self, name: str, limits: FileLimits, merged: MergedCells) -> None:
        self._name, self._limits, self._merged = name, limits, merged
        self.table_rows = 0
        self.values = self.gaps = self.errors = self.long = self._count = self._bytes = 0
        self.first_error = self.first_long = ""
        self.filled: set[int] = set()

    def rows(self, sheet: Any) -> Iterator[list[str]]:
        """Yield the texts in each row. Rows without values are empty."""
        # Its own statement of its size may be wrong, and rows would be cut or filled.
        sheet.reset_dimensions()
        for number, row in enumerate(sheet.iter_rows(), start=1):
            if number > MAX_ROWS:
                raise BadData(f"{self._name} has more than {MAX_ROWS:,} rows in the sheet {sheet.title!r}")
            self._count += max(len(row), 1)
            check_expanded(self._name, self._count * BYTES_PER_NUMBER + self._bytes, self._limits)
            texts = [self._text(cell) for cell in row]
            self._merged.repeat(number, texts)
            self.filled.update(at for at, text in enumerate(texts) if text)
            self.table_rows += sum(map(bool, texts)) > 1
            if not any(texts):
                texts.clear()
            self._bytes += sum(map(len, texts))
            yield texts

    def _text(self, cell: Any) -> str:
        value = cell.value
        if value is None or value == "":
            self.gaps += 1
            return ""
        if cell.data_type == "e" or (isinstance(value, str) and value in ERRORS):
            if value != "#N/A":
                self.errors += 1
                self.first_error = self.first_error or f"{cell.coordinate} has {value}"
            return ""
        self.values += 1
        if isinstance(value, int | float) and abs(value) >= 10**KEPT_DIGITS and value == value // 1:
            self.long += 1
            self.first_long = self.first_long or f"{cell.coordinate} has {value:.0f}"
        return _written(value, cell.number_format)

    def findings(self, missing: int) -> list[str]:
        """Return sentences on cells without a value that should have one."""
        findings = []
        if self.errors:
            many = "One cell has an error" if self.errors == 1 else f"{self.errors:,} cells have errors"
            findings.append(f"{many} in place of a value, which is then missing; {self.first_error}.")
        if self.long:
            many = "One cell has a number" if self.long == 1 else f"{self.long:,} cells have numbers"
            findings.append(
                f"{many} of more than {KEPT_DIGITS} digits, of which programs for spreadsheets keep no more; "
                f"{self.first_long}. Different identifiers may have become equal: write them as text."
            )
        findings += self._merged.findings()
        if missing:
            many = "One formula has" if missing == 1 else f"{missing:,} formulas have"
            findings.append(
                f"{many} no stored result, so it is a missing value: open the workbook in a program for "
                "spreadsheets, save it, and upload it again."
            )
        return findings


def _written(value: object, number_format: str) -> str:
    """Return a cell's value as text; dates as ISO 8601, without a time if the sheet shows none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.datetime):
        shows_time = (
            HAS_TIME.search(NOT_FORMAT.sub("", number_format or "")) or value.time() != datetime.time()
        )
        return value.isoformat(sep=" ", timespec="auto") if shows_time else value.date().isoformat()
    if isinstance(value, datetime.timedelta):
        return str(value.total_seconds())
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, float):
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def _formulas_without_result(path: Path, name: str) -> int:
    """Count the formulas in a sheet that have no stored result."""
    with _opened(path, data_only=False) as formulas, _opened(path, data_only=True) as results:
        sheets = [book[name] for book in (formulas, results)]
        for sheet in sheets:
            sheet.reset_dimensions()
        return sum(
            formula.data_type == "f" and result.value is None
            for row, row_of_results in zip(*(sheet.iter_rows() for sheet in sheets), strict=True)
            for formula, result in zip(row, row_of_results, strict=True)
        )


def _other_sheets(read: str, others: list[str]) -> list[str]:
    if not others:
        return []
    return [
        f"The workbook has {len(others) + 1} sheets; {read!r} was read, and not {_listed(others)}. To read "
        "another one, name it as the sheet."
    ]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MAX_SHEETS_NAMED} more" if len(names) > MAX_SHEETS_NAMED else ""
    return ", ".join(repr(name) for name in names[:MAX_SHEETS_NAMED]) + more
