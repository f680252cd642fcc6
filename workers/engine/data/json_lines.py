"""Reads JSON Lines: one object a line, whose keys are the columns."""

import codecs
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from jobs.contracts.file_limits import DEFAULT_LIMITS, FileLimits
from workers.engine.arrays import Array
from workers.engine.data.csv_file import BadRows
from workers.engine.data.expansion import check_expanded
from workers.engine.data.table import Table, check_count, check_names, check_size
from workers.engine.data.texts import check_lengths, text_array
from workers.engine.errors import BadData

BYTES_PER_VALUE = 64
"""Memory of a value while the lines are read."""


def read_json_lines(path: Path, limits: FileLimits = DEFAULT_LIMITS, bad: BadRows | None = None) -> Table:
    """Read a file of JSON objects, one for each line. A key that an object lacks is a missing value.

    Args:
        path: the file.
        limits: of its size.
        bad: which lines may be left out; none by default. It gets those that are.

    Raises:
        BadData: the file is too large, or a line is no flat JSON object.
    """
    check_size(path, limits)
    bad = bad or BadRows()
    columns: dict[str, list[Any]] = {}
    rows = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if not line.strip():
                continue
            if isinstance(value := _object(line), str):
                bad.rows.append((number, value, line.decode(errors="replace")))
                if not bad.allowed:
                    break
                continue
            added = [name for name in value if name not in columns]
            if added or rows % 1024 == 0:
                count = len(columns) + len(added)
                check_count(count, path.name, limits)
                check_expanded(path.name, rows * count * BYTES_PER_VALUE, limits)
            # Rows before the first one with this key lack it.
            columns.update((name, [None] * rows) for name in added)
            for name, found in columns.items():
                found.append(value.get(name))
            rows += 1
    bad.check(rows, path.name)
    check_names([name.strip() for name in columns], path.name, limits)
    arrays = {name.strip(): _column(name, values, limits) for name, values in columns.items()}
    return Table(arrays, bad_rows=len(bad.rows))


def _object(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line, or the reason why it cannot be read."""
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        return f"no JSON ({error.msg})"
    if not isinstance(value, dict):
        return "no JSON object"
    if nested := next((name for name, each in value.items() if isinstance(each, list | dict)), None):
        return f"a list or an object as {nested!r}"
    return value


def _column(name: str, values: list[Any], limits: FileLimits) -> Array:
    """Return the values of a key: numbers or booleans if all are, else texts with "" for missing ones."""
    kinds = {type(value) for value in values} - {type(None)}
    if kinds == {bool} and None not in values:
        return np.asarray(values)
    if kinds and kinds <= {int, float}:
        try:
            return np.asarray(values, np.int64 if kinds == {int} and None not in values else np.float64)
        except OverflowError as error:
            raise BadData(f"column {name!r} has whole numbers outside of 64 bits") from error
    column = text_array(map(_text, values))
    check_lengths(name, column, limits.text_characters)
    return column


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
