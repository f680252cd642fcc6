"""Reads JSON Lines: one object a line, whose keys are the columns."""

import codecs
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import BYTES_PER_NUMBER, check_expanded
from workers.engine.data.reading.arrow_columns import to_arrow
from workers.engine.data.reading.csv_file import BadRows
from workers.engine.data.reading.header import Header, name_columns
from workers.engine.data.reading.json_document import loads
from workers.engine.data.spilled import MAX_OPEN_COLUMNS, NumberWriter, Spill, SpilledColumns, writers
from workers.engine.data.table import Table, check_count, check_fields, check_size
from workers.engine.data.texts import check_lengths, text_array
from workers.engine.errors import BadData

BYTES_PER_VALUE = 64
"""Memory of a value while the lines are read."""
PART_ROWS = 8192
"""Lines of a large file that are in memory at a time."""


def read_json_lines(
    path: Path,
    limits: FileLimits = DEFAULT_LIMITS,
    bad: BadRows | None = None,
    spill: Spill | None = None,
) -> Table:
    """Read a file of JSON objects, one for each line. A key that an object lacks is a missing value.

    Args:
        path: the file.
        limits: the size limits.
        bad: which lines may be left out; none by default. It gets those that are.
        spill: where a large file's columns are; without it they are in memory.

    Raises:
        BadData: the file is too large, or a line is no flat JSON object.
    """
    check_size(path, limits)
    bad = bad or BadRows()
    spill = spill.for_size(path.stat().st_size) if spill is not None else None
    kinds, rows = _kinds(path, limits, bad)
    bad.check(rows, path.name)
    header = name_columns([name.strip() for name in kinds])
    check_fields(header.names, path.name, limits)
    names = dict(zip(kinds, header.names, strict=True))
    if spill is not None and len(kinds) <= MAX_OPEN_COLUMNS:
        return _table(_in_parts(path, kinds, names, limits, bad, spill), header, bad)
    check_expanded(path.name, rows * len(kinds) * BYTES_PER_VALUE, limits)
    columns: dict[str, list[Any]] = {name: [] for name in kinds}
    for value in _objects(path, bad):
        for name, values_of_key in columns.items():
            values_of_key.append(value.get(name))
    arrays = {names[name]: _column(name, values, kinds[name], limits) for name, values in columns.items()}
    return _table(arrays, header, bad)


def _table(columns: Mapping[str, Array], header: Header, bad: BadRows) -> Table:
    return Table(
        columns,
        bad_rows=len(bad.rows),
        findings=header.findings,
        index=header.labels,
        renamed=header.renamed,
    )


def _kinds(path: Path, limits: FileLimits, bad: BadRows) -> tuple[dict[str, set[type]], int]:
    """Return each key's value types, None if a value is missing, and the row count."""
    kinds: dict[str, set[type]] = {}
    present: Counter[str] = Counter()
    lists: set[str] = set()
    rows = 0
    for number, line in _lines(path):
        if isinstance(value := _object(line, kinds, lists), str):
            bad.rows.append((number, value, line.decode(errors="replace")))
            if not bad.allowed:
                break
            continue
        if added := [name for name in value if name not in kinds]:
            check_count(len(kinds) + len(added), path.name, limits)
            kinds.update((name, set()) for name in added)
        for name, key_value in value.items():
            kinds[name].add(type(key_value))
        present.update(value.keys())
        rows += 1
        if rows % 1024 == 1:
            check_expanded(path.name, rows * len(kinds) * BYTES_PER_NUMBER, limits)
    for name, types in kinds.items():
        if present[name] < rows:
            types.add(type(None))
    return kinds, rows


def _in_parts(
    path: Path,
    kinds: Mapping[str, set[type]],
    names: Mapping[str, str],
    limits: FileLimits,
    bad: BadRows,
    spill: Spill,
) -> SpilledColumns:
    """Return a large file's columns by the names of their keys; only some lines are in memory at a time."""
    columns = SpilledColumns(spill.folder)
    dtypes = {names[name]: _dtype(types) for name, types in kinds.items()}
    first = size = 0
    with writers(columns, dtypes) as opened:
        objects = _objects(path, bad)
        while part := list(islice(objects, PART_ROWS)):
            for name, types in kinds.items():
                values = _column(name, [value.get(name) for value in part], types, limits, first)
                size += values.nbytes
                writer = opened[names[name]]
                if isinstance(writer, NumberWriter):
                    writer.append(values)
                else:
                    writer.append(to_arrow(values))
            check_expanded(path.name, size, limits)
            first += len(part)
    return columns


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not empty, with their numbers."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip():
                yield number, text


def _objects(path: Path, bad: BadRows) -> Iterator[dict[str, Any]]:
    """Yield the objects in all lines but the bad ones."""
    left_out = {number for number, _, _ in bad.rows}
    return (loads(line) for number, line in _lines(path) if number not in left_out)


def _object(line: bytes, kinds: Mapping[str, set[type]], lists: set[str]) -> dict[str, Any] | str:
    """Return a line's object, or the reason why it cannot be read.

    Args:
        line: the line.
        kinds: each key's value types in the lines before.
        lists: the keys whose values are lists, to which new ones are added.
    """
    try:
        value = loads(line)
    except json.JSONDecodeError as error:
        return f"no JSON ({error.msg})"
    if not isinstance(value, dict):
        return "no JSON object"
    if nested := next((name for name, key_value in value.items() if _is_nested(key_value)), None):
        return f"a nested list or an object as {nested!r}"
    return _mixed(value, kinds, lists) or value


def _mixed(value: dict[str, Any], kinds: Mapping[str, set[type]], lists: set[str]) -> str | None:
    """Return why a line does not fit those before, in which a key has lists or single values; else None."""
    added = {name for name, key_value in value.items() if isinstance(key_value, list)} - lists
    for name in added:
        if not kinds.get(name, set()) <= {type(None)}:
            return f"a list as {name!r}, which has single values in lines before"
    for name in lists.intersection(value):
        if not isinstance(value[name], list | None):
            return f"a single value as {name!r}, which has lists in lines before"
    lists |= added
    return None


def _is_nested(value: Any) -> bool:
    """Return whether a value is more than a list with words and numbers, as multilabel targets are."""
    if isinstance(value, list):
        return any(item is None or isinstance(item, list | dict) for item in value)
    return isinstance(value, dict)


def _dtype(kinds: set[type]) -> np.dtype[Any] | None:
    """Return the column type for values with these types; None for texts."""
    types = kinds - {type(None)}
    if kinds == {bool}:
        return np.dtype(bool)
    if types and types <= {int, float}:
        return np.dtype(np.int64 if kinds == {int} else np.float64)
    return None


def _column(name: str, values: list[Any], kinds: set[type], limits: FileLimits, first: int = 0) -> Array:
    """Return a key's values: numbers or booleans if all are, else texts with "" for missing ones.

    Args:
        name: the key.
        values: some values that it has.
        kinds: the types that its values have.
        limits: the limits for the texts.
        first: the first row's number.
    """
    dtype = _dtype(kinds)
    if dtype is not None:
        try:
            return np.asarray(values, dtype)
        except OverflowError as error:
            raise BadData(f"column {name!r} has whole numbers outside of 64 bits") from error
    column = text_array(map(_text, values))
    check_lengths(name, column, limits.text_characters, first)
    return column


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
