"""Converts Arrow columns whose numbers 64 bits do not hold exactly to texts.

pandas makes floats of whole numbers with gaps, and refuses decimals: two identifiers could become one number.
"""

import json
from typing import Any

from workers.engine.data.reading.exact_numbers import LARGEST_EXACT, LARGEST_INTEGER, are_exact


def with_exact_texts(table: Any) -> Any:
    """Return an Arrow table with texts for whole numbers that no array of numbers holds exactly."""
    changed = []
    for place, field in enumerate(table.schema):
        if (texts := _exact_texts(table.column(place))) is not None:
            table = table.set_column(place, field.name, texts)
            changed.append(field.name)
    return without_types(table, changed) if changed else table


def _exact_texts(column: Any) -> Any | None:
    """Return a column's whole numbers as texts, or as int64 if they fit; None if the column remains."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_decimal(column.type):
        if (whole := _whole_decimals(column)) is None:
            return None
        column = whole
    elif not pa.types.is_integer(column.type) or (not column.null_count and column.type != pa.uint64()):
        return None
    ends = pc.min_max(column).as_py()
    if ends["min"] is None or (ends["min"] >= -LARGEST_EXACT and ends["max"] <= LARGEST_EXACT):
        return None
    if not column.null_count and ends["max"] <= LARGEST_INTEGER and ends["min"] >= -LARGEST_INTEGER:
        return pc.cast(column, pa.int64())
    texts = pc.cast(column, pa.string())
    return None if are_exact(texts) else texts


def _whole_decimals(column: Any) -> Any | None:
    """Return decimals without a fraction as decimals with scale 0; None for others."""
    import pyarrow as pa
    import pyarrow.compute as pc

    is_wide = column.type.bit_width > 128
    try:
        return pc.cast(column, pa.decimal256(76, 0) if is_wide else pa.decimal128(38, 0))
    except pa.ArrowInvalid:
        return None


def without_types(table: Any, names: list[str]) -> Any:
    """Return a table whose pandas metadata have no types for some columns."""
    metadata = dict(table.schema.metadata or {})
    if b"pandas" in metadata:
        described = json.loads(metadata[b"pandas"])
        columns = [column for column in described.get("columns", ()) if column.get("field_name") not in names]
        metadata[b"pandas"] = json.dumps(described | {"columns": columns}).encode()
    return table.replace_schema_metadata(metadata)
