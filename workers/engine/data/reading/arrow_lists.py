"""Reads Arrow list columns as JSON lists, as in JSON Lines: they are for a target with several labels."""

from collections.abc import Sequence
from typing import Any

import orjson

from jobs.spec.data.file_limits import FileLimits
from workers.engine.arrays import Array
from workers.engine.data.expansion import BYTES_PER_NUMBER, check_expanded
from workers.engine.data.texts import BYTES_PER_TEXT, check_lengths, text_array
from workers.engine.errors import BadData

PART_ROWS = 8192
"""Rows whose size is checked at a time, before their texts are made."""


def check_columns(schema: Any) -> None:
    """Check that each column has single values, or lists that can be labels.

    Raises:
        BadData: a column is nested in another way.
    """
    import pyarrow as pa

    for field in schema:
        if pa.types.is_nested(field.type) and not has_labels(field.type):
            raise BadData(
                f"column {field.name!r} contains {field.type} values; nested columns are not supported, "
                "except lists of words or whole numbers. Write the values inside as columns of their own, "
                "for example by pyarrow.Table.flatten"
            )


def has_labels(kind: Any) -> bool:
    """Return whether an Arrow type is a list type for words, whole numbers or booleans.

    Views do not count: many can show the same bytes. Lists with other numbers are measures, not labels.
    """
    import pyarrow as pa

    types = pa.types
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return False
    item = kind.value_type.value_type if types.is_dictionary(kind.value_type) else kind.value_type
    return bool(_is_text(item) or types.is_integer(item) or types.is_boolean(item))


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def word_paths(schema: Any) -> list[str]:
    """Return the paths for words in lists, as a Parquet file's option `read_dictionary` names them.

    Args:
        schema: a `pyarrow.parquet.ParquetSchema`, which `check_columns` has accepted.
    """
    columns = (schema.column(i) for i in range(len(schema)))
    return [
        column.path
        for column in columns
        if column.max_repetition_level and column.physical_type == "BYTE_ARRAY"
    ]


def check_parquet_lists(name: str, metadata: Any, limits: FileLimits) -> None:
    """Check how many values a Parquet file's columns have, as a list can have any number.

    Args:
        name: the file's name.
        metadata: a `pyarrow.parquet.FileMetaData`.
        limits: the task's limits.

    Raises:
        TooLarge: there are too many.
    """
    groups = (metadata.row_group(i) for i in range(metadata.num_row_groups))
    values = sum(group.column(i).num_values for group in groups for i in range(group.num_columns))
    check_expanded(name, values * BYTES_PER_NUMBER, limits)


def with_json_lists(table: Any, limits: FileLimits) -> Any:
    """Return an Arrow table whose lists are JSON texts; a missing list stays missing.

    Raises:
        BadData: a list has a missing value, or its text is too long.
        TooLarge: the texts are larger than the limit.
    """
    import pyarrow as pa

    for index, field in enumerate(table.schema):
        if has_labels(field.type):
            texts = json_lists(field.name, table.column(index), limits)
            table = table.set_column(index, field.name, pa.array(texts.tolist(), pa.large_string()))
    return table


def json_lists(name: str, lists: Any, limits: FileLimits) -> Array:
    """Return lists as JSON texts, "" for missing ones, (rows,).

    Args:
        name: the column's name.
        lists: a chunked Arrow array.
        limits: the limits for the texts.

    Raises:
        BadData, TooLarge: see `with_json_lists`.
    """
    texts: list[str] = []
    size = 0
    for first in range(0, len(lists), PART_ROWS):
        part = lists.slice(first, PART_ROWS)
        _check_numbers(name, part, limits, first)
        size += _text_bytes(part)
        check_expanded(f"column {name!r}", size, limits)
        # One list after the other, since a Python object takes more memory than its text.
        part_texts = [_json(name, first + row, value.as_py()) for row, value in enumerate(part)]
        check_lengths(name, text_array(part_texts), limits.text_characters, first)
        texts += part_texts
    return text_array(texts)


def _check_numbers(name: str, lists: Any, limits: FileLimits, first: int) -> None:
    """Check how many values the longest list has: each takes a character and a comma at least."""
    import pyarrow.compute as pc

    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    if lengths.size and (longest := int(lengths.max())) > limits.text_characters:
        raise BadData(
            f"column {name!r} has a list of {longest:,} values in row {first + int(lengths.argmax()) + 1}; "
            f"at most {limits.text_characters:,} characters are read"
        )


def _text_bytes(lists: Any) -> int:
    """Return about how many bytes lists have as texts, counted without making them."""
    import pyarrow.compute as pc

    size = BYTES_PER_TEXT * len(lists)
    for chunk in lists.chunks:
        items = pc.list_flatten(chunk)
        size += BYTES_PER_NUMBER * len(items)
        if hasattr(items, "dictionary") and _is_text(items.dictionary.type):
            lengths = pc.binary_length(items.dictionary)
            size += pc.sum(lengths.take(items.indices)).as_py() or 0
        elif _is_text(items.type):
            size += pc.sum(pc.binary_length(items)).as_py() or 0
    return size


def _json(name: str, row: int, value: Sequence[str | int | bool] | None) -> str:
    if value is None:
        return ""
    if None in value:
        raise BadData(
            f"column {name!r} has a list with a missing value in row {row + 1}; leave it out of the list"
        )
    return orjson.dumps(value).decode()
