"""Reads JSON Lines: one object a line, whose keys are the columns."""

import codecs
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from jobs.spec.data.file_limits import DEFAULT_LIMITS, FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import BYTES_PER_NUMBER, check_expanded
from workers.engine.data.reading.arrow_columns import to_arrow
from workers.engine.data.reading.bad_rows import FLATTEN, BadRows
from workers.engine.data.reading.exact_numbers import COMPARED, equal_decimals
from workers.engine.data.reading.header import Header, name_columns
from workers.engine.data.reading.json_numbers import (
    WrittenFloat,
    dtype_of,
    numbers_of,
    parsed,
    with_kinds,
)
from workers.engine.data.spilled import MAX_OPEN_COLUMNS, NumberWriter, Spill, SpilledColumns, writers
from workers.engine.data.table import Table, check_count, check_fields, check_size
from workers.engine.data.texts import check_lengths, text_array

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
    reader = _Reader(path, kinds, header, limits, bad, {})
    if spill is not None and len(kinds) <= MAX_OPEN_COLUMNS:
        return reader.table(with_kinds(kinds, lambda: reader.columns_in_parts(spill)))
    check_expanded(path.name, rows * len(kinds) * BYTES_PER_VALUE, limits)
    return reader.table(reader.columns())


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


@dataclass(frozen=True)
class _Reader:
    """Reads the columns of a file whose keys are known.

    Attributes:
        path: the file.
        kinds: each key's value types. One is added if numbers turn out not to fit the others.
        header: the names of the keys as columns, in the same order.
        limits: the size limits.
        bad: the lines that are left out.
        decimals: gets the texts of decimals that are longer than a float64 needs.
    """

    path: Path
    kinds: dict[str, set[type]]
    header: Header
    limits: FileLimits
    bad: BadRows
    decimals: dict[str, list[str]]

    @property
    def names(self) -> dict[str, str]:
        """Return the columns' names by key."""
        return dict(zip(self.kinds, self.header.names, strict=True))

    def table(self, columns: Mapping[str, Array]) -> Table:
        """Return the table with these columns."""
        pairs = {name: equal_decimals(texts) for name, texts in self.decimals.items()}
        equal = {name: pair for name, pair in pairs.items() if pair is not None}
        return Table(
            columns,
            bad_rows=len(self.bad.rows),
            findings=self.header.findings,
            index=self.header.labels,
            renamed=self.header.renamed,
            equal_decimals=equal,
        )

    def columns(self) -> dict[str, Array]:
        """Return all columns."""
        values: dict[str, list[Any]] = {name: [] for name in self.kinds}
        for row in self._objects():
            for name, values_of_key in values.items():
                values_of_key.append(row.get(name))
        return {column: self._whole_column(name, values[name]) for name, column in self.names.items()}

    def _whole_column(self, name: str, values: list[Any]) -> Array:
        return with_kinds(self.kinds, lambda: self._column(name, values))

    def columns_in_parts(self, spill: Spill) -> SpilledColumns:
        """Return a large file's columns; only some lines are in memory at a time.

        Raises:
            OtherKind: numbers do not fit the column's types.
        """
        columns = SpilledColumns(spill.folder)
        names = self.names
        dtypes = {names[name]: dtype_of(types) for name, types in self.kinds.items()}
        first = size = 0
        with writers(columns, dtypes) as opened:
            objects = self._objects()
            while part := list(islice(objects, PART_ROWS)):
                for name in self.kinds:
                    values = self._column(name, [value.get(name) for value in part], first)
                    size += values.nbytes
                    writer = opened[names[name]]
                    if isinstance(writer, NumberWriter):
                        writer.append(values)
                    else:
                        writer.append(to_arrow(values))
                check_expanded(self.path.name, size, self.limits)
                first += len(part)
        return columns

    def _column(self, name: str, values: list[Any], first: int = 0) -> Array:
        """Return a key's values: numbers or booleans if all are, else texts with "" for missing ones.

        Args:
            name: the key.
            values: some values that it has.
            first: the first row's number.

        Raises:
            OtherKind: numbers do not fit the column's types.
        """
        kinds = self.kinds[name]
        if (dtype := dtype_of(kinds)) is not None:
            self._keep_decimals(name, values)
            return numbers_of(name, values, kinds, dtype)
        column = text_array(map(_text, values))
        check_lengths(name, column, self.limits.text_characters, first)
        return column

    def _keep_decimals(self, name: str, values: list[Any]) -> None:
        if WrittenFloat in self.kinds[name]:
            kept = self.decimals.setdefault(self.names[name], [])
            texts = (value.text for value in values if type(value) is WrittenFloat)
            kept.extend(islice(texts, COMPARED - len(kept)))

    def _objects(self) -> Iterator[dict[str, Any]]:
        """Yield the objects in all lines but the bad ones."""
        left_out = {number for number, _, _ in self.bad.rows}
        return (parsed(line) for number, line in _lines(self.path) if number not in left_out)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the lines that are not empty, with their numbers."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            text = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if text.strip():
                yield number, text


def _object(line: bytes, kinds: Mapping[str, set[type]], lists: set[str]) -> dict[str, Any] | str:
    """Return a line's object, or the reason why it cannot be read.

    Args:
        line: the line.
        kinds: each key's value types in the lines before.
        lists: the keys whose values are lists, to which new ones are added.
    """
    try:
        value = parsed(line)
    except json.JSONDecodeError as error:
        return f"no JSON ({error.msg})"
    except (UnicodeDecodeError, RecursionError) as error:
        return f"no JSON ({error})"
    if not isinstance(value, dict):
        return "no JSON object"
    # Texts may have these characters too.
    if line.count(b'":') + line.count(b'" :') > len(value) and (key := _repeated_key(line)) is not None:
        return f"the key {key!r} twice"
    if nested := next((name for name, key_value in value.items() if _is_nested(key_value)), None):
        return f"a nested list or an object as {nested!r} (make columns of its values, as by {FLATTEN})"
    return _mixed(value, kinds, lists) or value


def _repeated_key(line: bytes) -> str | None:
    """Return a key that a line's object has twice; None if there is none."""
    found: list[str] = []

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        counts = Counter(key for key, _ in pairs)
        found.extend(key for key, count in counts.items() if count > 1)
        return dict(pairs)

    json.loads(line, object_pairs_hook=check, parse_int=lambda _: 0)
    return found[0] if found else None


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


def _text(value: object) -> str:
    """Return a value among texts, as a request's value is read."""
    match value:
        case None:
            return ""
        case str():
            return value.strip()
        case bool():
            return str(value).lower()
        case WrittenFloat():
            return value.text
        case int() | float():
            return str(int(value)) if value == int(value) else str(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
