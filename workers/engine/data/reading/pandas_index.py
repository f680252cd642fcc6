"""Finds the index of a pandas frame in a Parquet or Arrow file: its levels are columns of the table."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from workers.engine.arrays import Array
from workers.engine.data.reading.header import Header, name_columns

NUMBER = "\0"
"""Precedes the number of a field whose name another one before it has."""
UNNAMED = re.compile(r"__index_level_\d+__")
"""Names that pandas gives to the fields of levels without a name."""


class FrameColumns(NamedTuple):
    """The columns of a frame, its index first.

    Attributes:
        fields: the file's fields that are columns, in the order of the table.
        ranges: levels that count the rows, have a name, and no field.
        header: the names of the ranges, and then of the fields.
    """

    fields: list[str]
    ranges: list[Mapping[str, Any]]
    header: Header

    @property
    def names(self) -> list[tuple[str, str]]:
        """The file's name and the table's, of each field."""
        return list(zip(self.fields, self.header.names[len(self.ranges) :], strict=True))

    def counted(self, rows: int) -> dict[str, Array]:
        """Return the columns of the ranges."""
        numbers = np.arange(rows, dtype=np.int64)
        named = zip(self.header.names, self.ranges, strict=False)
        return {name: level["start"] + numbers * level["step"] for name, level in named}


def different_names(names: Sequence[str]) -> list[str]:
    """Return the names of fields with a number at those that others have; `frame_columns` renames them."""
    seen: Counter[str] = Counter()
    different = []
    for name in names:
        different.append(f"{name}{NUMBER}{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return different


def frame_columns(schema: Any) -> FrameColumns:
    """Return a file's columns.

    Args:
        schema: its Arrow schema, whose names differ.
    """
    described = _described(schema)
    levels = described.get("index_columns", [])
    names = {
        column.get("field_name"): column.get("name")
        for column in described.get("columns", [])
        if isinstance(column, dict)
    }
    fields = [level for level in levels if isinstance(level, str) and level in schema.names]
    ranges = [level for level in levels if _is_named_range(level)]
    kept = [name for name in fields if len(levels) > 1 or names.get(name) or _is_information(schema, name)]
    others = [name for name in schema.names if name not in fields]
    columns = [*kept, *others]
    texts = [str(level["name"]) for level in ranges]
    texts += [str(names.get(name) or "") for name in kept]
    # Another program may have kept such a field, and not the description of it.
    texts += ["" if UNNAMED.fullmatch(name) else name.split(NUMBER)[0] for name in others]
    labels = [
        place for place, name in enumerate(columns, len(ranges)) if name in kept or UNNAMED.fullmatch(name)
    ]
    return FrameColumns(columns, ranges, name_columns([text.strip() for text in texts], labels))


def _described(schema: Any) -> dict[str, Any]:
    """Return what pandas wrote of its frame."""
    described = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
    return described if isinstance(described, dict) else {}


def _is_named_range(level: Any) -> bool:
    if not isinstance(level, dict) or level.get("kind") != "range" or level.get("name") is None:
        return False
    return all(isinstance(level.get(part), int) and abs(level[part]) < 2**40 for part in ("start", "step"))


def _is_information(schema: Any, name: str) -> bool:
    """Return whether a level without a name is more than a number of each row."""
    import pyarrow as pa

    return not pa.types.is_integer(schema.field(name).type)
