"""The prediction form for a version that takes windows: table rows, pasted as CSV or JSON."""

import csv
import io
import json
from collections.abc import Set
from operator import itemgetter
from typing import Any

from jobs.errors import BadInput
from jobs.spec.data.columns import ColumnType
from jobs.spec.data.gap_words import is_gap
from jobs.spec.data.number_format import NumberFormat, read_number
from jobs.spec.data.profile import Profile
from jobs.spec.problems import Problem
from jobs.spec.signature import InputWindow, Signature
from webapp.http_errors import Malformed
from webapp.json_text import read_json
from webapp.pages.registry import tryout_columns

NAME = "instance"
DELIMITERS = (",", ";", "\t")


def example_rows(signature: Signature, window: InputWindow, profile: Profile | None) -> list[dict[str, Any]]:
    """Return a valid window: the data's first rows, in one group and ordered by time if known."""
    rows = _first_rows(window, profile) or [{}]
    instances = [_without_missing(row) for row in tryout_columns.examples_of(signature, profile, rows)]
    return [instances[number % len(instances)] for number in range(window.rows)]


def _without_missing(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def _first_rows(window: InputWindow, profile: Profile | None) -> list[dict[str, Any]]:
    rows = list(profile.preview) if profile is not None else []
    if window.group is not None and rows:
        rows = [row for row in rows if row.get(window.group) == rows[0].get(window.group)]
    timed = [row for row in rows if row.get(window.time) is not None]
    return sorted(timed, key=lambda row: row[window.time])[: window.rows]


def as_csv(signature: Signature, rows: list[dict[str, Any]], profile: Profile | None) -> str:
    """Return rows as CSV with a header, numbers with the decimal sign of the data."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    names = [column.name for column in signature.columns]
    writer.writerow(names)
    formats = _formats(profile)
    writer.writerows([[_cell_text(row.get(name), formats.get(name)) for name in names] for row in rows])
    return text.getvalue()


def _cell_text(value: Any, form: NumberFormat | None) -> str:
    if isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and form is not None:
        return str(value).replace(".", form.decimal)
    return "" if value is None else str(value)


def read_window(text: str, signature: Signature, profile: Profile | None) -> dict[str, Any]:
    """Return the instance in a pasted text: CSV with a header, a JSON list of rows, or `{"rows": […]}`.

    Raises:
        BadInput: it is neither, or a CSV value does not match its column's type.
        Malformed: it begins like JSON and is none, and its first line names no column.
    """
    if text.lstrip()[:1] in ("[", "{"):
        try:
            value = read_json(text.encode())
        except Malformed:
            # The name of a column may begin like JSON.
            if not _best_delimiter(text, {column.name for column in signature.columns})[1]:
                raise
        else:
            return value if isinstance(value, dict) else {"rows": value}
    return {"rows": _csv_rows(text, signature, profile)}


def _best_delimiter(text: str, names: Set[str]) -> tuple[str, int]:
    """Return the delimiter that finds the most column names in the first line, and their number."""
    header, _, _ = text.strip("\r\n").partition("\n")

    def count_names(delimiter: str) -> int:
        try:
            cells = next(csv.reader([header.rstrip("\r")], delimiter=delimiter), [])
        # A cell is too long.
        except csv.Error:
            return 0
        return len({name for cell in cells for name in (cell, cell.strip())} & names)

    return max(((delimiter, count_names(delimiter)) for delimiter in DELIMITERS), key=itemgetter(1))


def _csv_rows(text: str, signature: Signature, profile: Profile | None) -> list[dict[str, Any]]:
    kinds = {column.name: column.type for column in signature.columns}
    profiled, formats = {column.name for column in profile.columns} if profile else set(), _formats(profile)
    # Tabs and spaces at the end of a line are cells.
    text = text.strip("\r\n") if text.strip() else ""
    delimiter, _ = _best_delimiter(text, {*kinds})
    try:
        names, *lines = [*csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)] or [[]]
    except csv.Error as error:
        raise _refuse_text(f"The rows are no CSV: {error}.") from error
    # An empty line is a row without a value if there is one column.
    lines = [line or [""] for line in lines if line or len(names) == 1]
    # Spaces around a name are of the column, or were added to this text, around the values too.
    padded = {place for place, name in enumerate(names) if name not in kinds and name not in profiled}
    names, *lines = [
        [cell.strip() if place in padded else cell for place, cell in enumerate(line)]
        for line in (names, *lines)
    ]
    # Other columns of the data, such as the target, may stay in rows that are copied from a file.
    if unknown := [name for name in names if name not in kinds and name not in profiled]:
        columns = ", ".join([*kinds][:20])
        raise _refuse_text(f"The first line must name columns; {unknown[0]!r} is none of {columns}.")
    if len({*names}) < len(names) or not names:
        raise _refuse_text("The first line must name each column once.")
    rows = []
    for number, line in enumerate(lines, start=2):
        if len(line) != len(names):
            raise _refuse_text(
                f"Line {number} has {len(line)} values, and the first line has {len(names)} columns."
            )
        values = zip(names, line, strict=True)
        rows.append(
            {
                name: _value_of(cell, kinds[name], name, formats.get(name))
                for name, cell in values
                if name in kinds
            }
        )
    return rows


def _value_of(cell: str, kind: ColumnType, name: str, form: NumberFormat | None) -> Any:
    """Return a cell's value; a number that is written as in the data remains a text for the server."""
    if form is not None and kind in ("number", "integer") and cell.strip():
        is_written = not form.is_plain and read_number(cell, form) is not None
        if is_written or is_gap(cell):
            return cell
    return tryout_columns.value_of(cell.strip() if kind == "boolean" else cell, kind, name)


def _formats(profile: Profile | None) -> dict[str, NumberFormat]:
    """Return how the texts of columns are numbers in the data, by name."""
    columns = profile.columns if profile is not None else ()
    return {column.name: column.number_format for column in columns if column.number_format is not None}


def _refuse_text(message: str) -> BadInput:
    return BadInput(message, [Problem(f"/{NAME}", message)])
